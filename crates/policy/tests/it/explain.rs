//! What a configuration means, to the letter.

use crate::good::Files;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_policy::Config;
use tidegate_policy::config::explain;

/// `tests/good/NAME.txt` says what `NAME.yaml` means. `TIDEGATE_BLESS=1` writes them anew; read the
/// difference.
#[test]
fn everything_is_explained() {
    let files = files();
    assert!(files.len() >= 3, "only {} files found", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        let config =
            Config::parse(&text, &name, &Files).unwrap_or_else(|errors| panic!("{errors}"));
        let words = explain(&config);
        let golden = file.with_extension("txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&golden, &words).unwrap();
        }
        assert_eq!(fs::read_to_string(golden).unwrap(), words);
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect()
}
