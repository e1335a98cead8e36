//! Documents name files that exist: a split crate must not leave old paths behind.

use crate::sources::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the workspace whose files documents name.
const FOLDERS: [&str; 8] = [
    "bench", "crates", "deploy", "docs", "examples", "fuzz", "plugins", "scripts",
];

/// Endings of file names. A path with such an ending must begin at the workspace's root.
const ENDINGS: [&str; 4] = ["lua", "md", "rs", "toml"];

/// Replaces a name that the reader chooses.
const PLACEHOLDER: &str = "NAME";

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"]
        .map(|page| root().join(page))
        .into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("there are documents") {
            let path = entry.expect("readable").path();
            // A decision is a record of its day, and names files as they were.
            if path.is_dir() && !path.ends_with("decisions") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Returns the texts in backticks, without those of fenced blocks, each with its line.
fn quoted(page: &str) -> Vec<(usize, &str)> {
    let (mut found, mut is_fenced) = (Vec::new(), false);
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let texts = line.split('`').skip(1).step_by(2);
            found.extend(texts.map(|text| (number, text)));
        }
    }
    found
}

fn looks_like_a_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let Some((first, _)) = text.split_once('/') else {
        return false;
    };
    let ending = Path::new(text).extension().and_then(|it| it.to_str());
    let has_ending = ending.is_some_and(|ending| ENDINGS.contains(&ending));
    text.chars().all(is_plain) && !first.is_empty() && (FOLDERS.contains(&first) || has_ending)
}

/// Returns true if there is such a file or folder. Only the part before a placeholder counts.
fn exists(text: &str) -> bool {
    let known = text.split(PLACEHOLDER).next().unwrap_or_default();
    root().join(known).exists()
}

#[test]
fn documents_name_files_that_exist() {
    let (mut missing, mut checked) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).expect("readable");
        for (line, path) in quoted(&text) {
            if looks_like_a_path(path) {
                checked += 1;
                if !exists(path) {
                    missing.push(format!("{}:{line}: {path}", page.display()));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "these files do not exist:\n{}",
        missing.join("\n")
    );
    assert!(checked > 100, "only {checked} paths were found");
}

#[test]
fn a_path_has_a_folder_of_the_workspace_or_a_known_ending() {
    for path in [
        "crates/net/src/lib.rs",
        "docs/explanation/decisions",
        "config/words.rs",
    ] {
        assert!(looks_like_a_path(path), "{path}");
    }
    for other in ["/v1/check", "application/json", "10/min", "src", "a b/c.rs"] {
        assert!(!looks_like_a_path(other), "{other}");
    }
    assert!(exists("crates/redis/src/script/lua/NAME.lua"));
    assert!(!exists("crates/nothing/src/NAME.rs"));
}
