//! Any text as the file of limitador: translated or refused, and nothing panics either way.
//!
//! How: what is refused must say why, and where. What is translated must be a configuration that
//! loads as it is.

use tidegate_policy::{ChargeTime, Config};
use tidegate_policy::import::{SourceFile, limitador};

fuzz_target!(|text: &str| {
    let file = SourceFile {
        name: "fuzz.yaml".to_owned(),
        text: text.to_owned(),
    };
    match limitador(&file, ChargeTime::EvenIfRefused) {
        Ok(imported) => {
            let yaml = imported.to_yaml();
            let config = Config::from_yaml(&yaml);
            config.unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
        }
        Err(errors) => {
            assert!(errors.count() > 0, "refused without a reason");
            assert!(errors.problems().iter().all(|it| it.file() == "fuzz.yaml"));
        }
    }
});
