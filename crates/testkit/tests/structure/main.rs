//! Holds the workspace to its structure. Reading the sources costs a second or two, and keeps what no
//! compiler checks: one meaning for each type name, no module cycles, small files, crates and functions,
//! enough documentation, and documents that name files that exist.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod functions;
mod graph;
mod modules;
mod names;
mod packages;
mod paths;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{SourceFile, read_tests, read_workspace};

/// Names whose meaning is fixed by Rust's conventions, or by the type or module around them.
const SHARED_NAMES: &[&str] = &["Error", "Kind", "State"];

const FILE_LINES_MAX: usize = 530;
const CRATE_CODE_LINES_MAX: usize = 16_000;
const FUNCTION_LINES_MAX: usize = 60;
/// Some loops read better in one piece. There are never more of them than this.
const LONG_FUNCTIONS_MAX: usize = 4;

/// Lines of rustdoc for 100 lines of code, at least.
const RUSTDOC_PERCENT_MIN: usize = 20;
/// The same for the crates that other programs build on.
const RUSTDOC_PERCENT_MIN_OF: &[(&str, usize)] = &[
    ("core", 40),
    ("http", 40),
    ("limiter", 40),
    ("memory", 35),
    ("tower", 40),
];

#[test]
fn type_names_are_unique_in_the_workspace() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in read_workspace() {
        for file in package.files {
            for name in names::types_of_modules(&file) {
                places
                    .entry(name)
                    .or_default()
                    .insert(file.path.display().to_string());
            }
        }
    }
    let repeated: Vec<String> = places
        .iter()
        .filter(|(name, files)| files.len() > 1 && !SHARED_NAMES.contains(&name.as_str()))
        .map(|(name, files)| {
            format!(
                "{name}: {}",
                files.iter().cloned().collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    assert!(
        repeated.is_empty(),
        "give each of these types a name of its own:\n{}",
        repeated.join("\n")
    );
}

#[test]
fn a_type_name_is_a_noun_of_the_domain() {
    let mut riddles = Vec::new();
    for package in read_workspace() {
        for file in &package.files {
            let names = names::types_anywhere(file).into_iter();
            riddles.extend(
                names
                    .filter(|name| names::is_riddle(name))
                    .map(|name| format!("{name}: {}", file.path.display())),
            );
        }
    }
    assert!(
        riddles.is_empty(),
        "give each of these types a name that says what its values are:\n{}",
        riddles.join("\n")
    );
}

/// Tests are read as often as the code that they test.
#[test]
fn a_type_of_tests_is_a_noun_too() {
    let files = read_tests();
    assert!(files.len() > 100, "the tests were not found");
    let mut riddles = Vec::new();
    for file in &files {
        let names = names::types_anywhere(file).into_iter();
        let names = names.filter(|it| names::is_riddle(it));
        riddles.extend(
            names
                .filter(|it| !names::RIDDLES_OF_TESTS.contains(&it.as_str()))
                .map(|name| format!("{name}: {}", file.path.display())),
        );
    }
    assert!(
        riddles.is_empty(),
        "give each of these types a name that says what its values are:\n{}",
        riddles.join("\n")
    );
}

#[test]
fn a_bare_participle_pronoun_or_position_is_no_type_name() {
    for name in ["Told", "Of", "Beside", "Settling", "Layered", "Unclaimed"] {
        assert!(names::is_riddle(name), "{name}");
    }
    for name in ["Setting", "Feed", "Lease", "LastRefusal", "SettledMember"] {
        assert!(!names::is_riddle(name), "{name}");
    }
}

#[test]
fn modules_of_a_crate_form_no_cycle() {
    let mut found = Vec::new();
    for package in read_workspace() {
        let edges = modules::edges(&package);
        let Some(cycle) = modules::cycle(&edges) else {
            continue;
        };
        found.push(format!("in {}:", package.name));
        for (at, module) in cycle.iter().enumerate() {
            let next = &cycle[(at + 1) % cycle.len()];
            found.push(format!(
                "  {module} uses {next}, in {}",
                edges[&(module.clone(), next.clone())]
            ));
        }
    }
    assert!(
        found.is_empty(),
        "modules depend on each other in a circle:\n{}",
        found.join("\n")
    );
}

#[test]
fn files_and_crates_stay_small() {
    let mut large = Vec::new();
    for package in read_workspace() {
        let lines: usize = package.files.iter().map(SourceFile::code_lines).sum();
        if lines > CRATE_CODE_LINES_MAX {
            large.push(format!("{}: {lines} lines of code", package.name));
        }
        for file in package.files {
            let lines = file.text.lines().count();
            if lines > FILE_LINES_MAX {
                large.push(format!("{}: {lines} lines", file.path.display()));
            }
        }
    }
    assert!(
        large.is_empty(),
        "a file has at most {FILE_LINES_MAX} lines, a crate {CRATE_CODE_LINES_MAX} of code:\n{}",
        large.join("\n"),
    );
}

#[test]
fn few_functions_are_long() {
    let mut long = Vec::new();
    for package in read_workspace() {
        for file in &package.files {
            let functions = functions::functions(file).into_iter();
            long.extend(
                functions
                    .filter(|function| function.lines > FUNCTION_LINES_MAX)
                    .map(|it| format!("{}: {}: {} lines", file.path.display(), it.name, it.lines)),
            );
        }
    }
    assert!(
        long.len() <= LONG_FUNCTIONS_MAX,
        "at most {LONG_FUNCTIONS_MAX} functions have more than {FUNCTION_LINES_MAX} lines; split \
         one of these where an idea ends:\n{}",
        long.join("\n"),
    );
}

#[test]
fn the_share_of_documentation_does_not_shrink() {
    let (mut all_docs, mut all_code) = (0, 0);
    let mut short = Vec::new();
    for package in read_workspace() {
        let docs: usize = package.files.iter().map(SourceFile::rustdoc_lines).sum();
        let code: usize = package.files.iter().map(SourceFile::code_lines).sum();
        (all_docs, all_code) = (all_docs + docs, all_code + code);
        let wanted = RUSTDOC_PERCENT_MIN_OF
            .iter()
            .find(|(name, _)| *name == package.name);
        if let Some((name, percent)) = wanted
            && docs * 100 < code * percent
        {
            short.push(format!("{name}: {docs} of {code}, wanted {percent} %"));
        }
    }
    if all_docs * 100 < all_code * RUSTDOC_PERCENT_MIN {
        short.push(format!(
            "workspace: {all_docs} of {all_code}, wanted {RUSTDOC_PERCENT_MIN} %"
        ));
    }
    assert!(
        short.is_empty(),
        "too few lines of rustdoc for the lines of code; write what a caller may rely on:\n{}",
        short.join("\n"),
    );
}

/// The first line of a comment is the one that lists show: it begins with a verb or a noun.
#[test]
fn documentation_begins_with_a_verb_or_a_noun() {
    let openings = [
        "What ", "Who ", "Whoever ", "Whether ", "How ", "Which ", "Where ",
    ];
    let mut found = Vec::new();
    for package in read_workspace() {
        for file in package.files {
            let mut is_first = true;
            for (number, line) in (1..).zip(file.text.lines().map(str::trim)) {
                let Some(text) = line
                    .strip_prefix("///")
                    .or_else(|| line.strip_prefix("//!"))
                else {
                    is_first = true;
                    continue;
                };
                if is_first
                    && openings
                        .iter()
                        .any(|opening| text.trim_start().starts_with(opening))
                {
                    found.push(format!("{}:{number}: {}", file.path.display(), text.trim()));
                }
                is_first = false;
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} comments begin otherwise:\n{}",
        found.len(),
        found.join("\n")
    );
}
