//! Any text as files of an API gateway: translated or rejected, and nothing panics.
//!
//! How: the text is cut into files at lines of `=====`. A rejection must have a reason. A
//! translation must be policies that load unchanged.

use tidegate_import::{SourceFile, gateway};

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
