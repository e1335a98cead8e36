//! Any text as a file of variables of an event collector: translated or rejected, and nothing
//! panics.
//!
//! How: a rejection must have a reason and a line. A translation was read once already, so it
//! loads; and it contains no value of a variable that may be a secret.

use tidegate_import::{SourceFile, collector};

fuzz_target!(|text: &str| {
    let file = SourceFile {
        name: "fuzz.env".to_owned(),
        text: format!("REDIS_PASSWORD=Qx7secret\n{text}"),
    };
    match collector(&file) {
        Ok(imported) => assert!(!imported.to_yaml().contains("Qx7secret")),
        Err(errors) => {
            assert!(errors.count() > 0, "rejected without a reason");
            assert!(!errors.to_string().contains("Qx7secret"));
        }
    }
});
