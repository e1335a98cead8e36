//! Any text as files of an API gateway: translated or refused, and nothing panics either way.
//!
//! How: the text is cut into files at lines of `=====`. What is refused must say why. What is
//! translated must be policies that load as they are.

use tidegate_policy::import::{SourceFile, gateway};

fuzz_target!(|text: &str| {
    let files: Vec<SourceFile> = text
        .split("=====\n")
        .enumerate()
        .map(|(number, text)| SourceFile {
            name: number.to_string(),
            text: text.to_owned(),
        })
        .collect();
    match gateway(&files) {
        Ok(imported) => assert!(imported.to_yaml().contains("policies:")),
        Err(errors) => assert!(errors.count() > 0, "refused without a reason"),
    }
});
