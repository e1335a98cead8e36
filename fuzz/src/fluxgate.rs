//! Any text as a document of FluxGate: translated or rejected, and nothing panics.
//!
//! How: the text is cut into files at lines of `=====`. A rejection must have a reason. A
//! translation must be policies that load unchanged. The lines of the text are also used as fields
//! of a hash.

use tidegate_config::Config;
use tidegate_import::{ImportedConfig, RuleSetRecord, SourceFile, fluxgate, fluxgate_rule_sets};

fuzz_target!(|text: &str| {
    let files: Vec<SourceFile> = text
        .split("=====\n")
        .enumerate()
        .map(|(number, text)| SourceFile {
            name: number.to_string(),
            text: text.to_owned(),
        })
        .collect();
    check(fluxgate(&files));
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let record = RuleSetRecord {
        key: "fluxgate:ruleset:fuzz".to_owned(),
        fields: fields
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .collect(),
    };
    check(fluxgate_rule_sets("fuzz", &[record]));
});

fn check(imported: Result<ImportedConfig, tidegate_config::ConfigErrors>) {
    match imported {
        Ok(imported) => {
            let part = imported.to_part();
            // Without rules there are no policies, and nothing to load.
            if part.contains("policies:") {
                Config::from_yaml(&part).unwrap_or_else(|errors| panic!("{errors}\nin\n{part}"));
            }
        }
        Err(errors) => {
            assert!(errors.count() > 0, "rejected without a reason");
            let is_told = |file: &str| !file.contains("translated");
            assert!(
                errors.problems().iter().all(|it| is_told(it.file())),
                "{errors}"
            );
        }
    }
}
