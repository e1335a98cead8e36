//! Any text as a file of limitador: translated or rejected, and nothing panics.
//!
//! How: a rejection must have a reason and a position. A translation must be a configuration that
//! loads unchanged.

use tidegate_policy::ChargeTime;
use tidegate_config::Config;
use tidegate_import::{SourceFile, limitador};

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
            assert!(errors.count() > 0, "rejected without a reason");
            assert!(errors.problems().iter().all(|it| it.file() == "fuzz.yaml"));
        }
    }
});
