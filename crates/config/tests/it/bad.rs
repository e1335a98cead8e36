//! Every kind of mistake, and its exact message.
//!
//! `tests/bad/NAME.yaml` contains one mistake and `NAME.txt` its message. After a change,
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-policy` rewrites the messages; review the difference.

use crate::good::key_file;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_config::Config;
use tidegate_config::Environment;

#[test]
fn every_mistake_is_explained() {
    let mut wrong = Vec::new();
    let files = files();
    assert!(files.len() >= 45, "only {} files found", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let message = match Config::parse(&text, &name, &CommentVariables(&text)) {
            Ok(config) if config.warnings().is_empty() => "nothing is wrong".to_owned(),
            Ok(config) => config.warnings().iter().map(ToString::to_string).collect(),
            Err(errors) => format!("{errors}\n"),
        };
        let golden = file.with_extension("txt");
        if is_blessing() {
            fs::write(&golden, &message).unwrap();
        }
        if fs::read_to_string(&golden).ok().as_ref() != Some(&message) {
            wrong.push(format!("{name}:\n{message}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "not as in the .txt files:\n{}",
        wrong.join("\n")
    );
}

/// Variables are set in comments, such as `# TIDEGATE_STORE_TIMEOUT=20`; files are those in
/// `tests/keys`.
struct CommentVariables<'a>(&'a str);

impl Environment for CommentVariables<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let mut set = self
            .0
            .lines()
            .filter_map(|line| line.strip_prefix("# ")?.split_once('='));
        let found = set.find(|(set, _)| *set == name);
        found.map(|(_, value)| value.to_owned())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        key_file(path)
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension != "txt"))
        .collect();
    files.sort();
    files
}

fn is_blessing() -> bool {
    std::env::var_os("TIDEGATE_BLESS").is_some()
}

#[test]
fn an_error_that_main_returned_was_printed_as_a_structure() {
    let errors = Config::from_yaml("polices: []").unwrap_err();
    let printed = format!("{errors:?}");
    assert_eq!(printed, errors.to_string());
    assert!(printed.contains("did you mean `policies`?"), "{printed}");
}
