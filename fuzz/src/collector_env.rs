//! Any text as a file of variables of an event collector: translated or refused, and nothing panics
//! either way.
//!
//! How: what is refused must say why, on which line. What is translated has been read once already, so
//! it loads; and no value of a variable that may be a secret is in it.

use tidegate_policy::import::{SourceFile, collector};

fuzz_target!(|text: &str| {
    let file = SourceFile {
        name: "fuzz.env".to_owned(),
        text: format!("REDIS_PASSWORD=Qx7secret\n{text}"),
    };
    match collector(&file) {
        Ok(imported) => assert!(!imported.to_yaml().contains("Qx7secret")),
        Err(errors) => {
            assert!(errors.count() > 0, "refused without a reason");
            assert!(!errors.to_string().contains("Qx7secret"));
        }
    }
});
