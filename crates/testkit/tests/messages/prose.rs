//! Prose around the code: pages and comments. Each phrase has a maximum number of occurrences,
//! which was its count when the maximum was set. A maximum may only fall.

use super::{has_words, workspace};
use std::fs;
use std::path::{Path, PathBuf};

/// A phrase to avoid, its replacement, and its maximum counts in pages and in comments.
struct Phrase {
    text: &'static str,
    instead: &'static str,
    pages_max: usize,
    comments_max: usize,
}

const fn phrase(
    text: &'static str,
    instead: &'static str,
    (pages_max, comments_max): (usize, usize),
) -> Phrase {
    Phrase {
        text,
        instead,
        pages_max,
        comments_max,
    }
}

const PHRASES: &[Phrase] = &[
    phrase("unless told", "Default: X", (0, 0)),
    phrase("told", "reported, shown, logged", (0, 2)),
    phrase("tells", "returns, reports, shows", (0, 0)),
    phrase("says", "sets, contains, reports", (0, 0)),
    phrase("said", "set, reported", (0, 1)),
    phrase("whoever", "any client", (0, 0)),
    phrase("whatever", "any value", (0, 0)),
    phrase("somebody", "a client", (0, 0)),
    phrase("nobody", "no client", (0, 0)),
    phrase("everybody", "all clients", (0, 0)),
    phrase("anybody", "any client", (0, 0)),
    phrase("those who", "clients that", (0, 0)),
    phrase("who asks", "the client, the caller", (0, 0)),
    phrase("however often", "any number of times", (0, 0)),
    phrase("however many", "any number of", (0, 0)),
    phrase("is asked", "is queried, is called", (0, 0)),
    phrase("was asked", "was queried, was called", (0, 0)),
    phrase("question", "check request", (0, 19)),
    phrase("door", "listener, endpoint, API, frontend", (0, 0)),
    phrase("stands", "is", (2, 34)),
    phrase("how it stands", "status", (0, 0)),
    phrase("as good as new", "full, reset, expired", (0, 0)),
    phrase("kept out", "banned, denied", (0, 0)),
    phrase("let in again", "unbanned", (0, 0)),
    phrase("served on", "keeps serving", (0, 0)),
    phrase("given back", "refunded, released", (0, 0)),
    phrase("gives back", "refunds, releases", (0, 0)),
    phrase("is away", "is unreachable", (0, 0)),
    phrase("in one step", "atomically", (0, 1)),
    phrase("at one moment", "atomically", (0, 0)),
    phrase("goes on", "continues", (0, 0)),
    phrase("by itself", "automatically, separately", (0, 0)),
    phrase("of its own", "its own X, a separate X", (0, 1)),
    phrase("beside", "next to, in addition to", (0, 0)),
    phrase("came of", "outcome, result", (0, 0)),
    phrase("becomes of", "outcome, result", (0, 0)),
    phrase("own word", "reported by", (0, 0)),
    phrase("of ours", "Tidegate's", (0, 0)),
    phrase("believed", "trusted, accepted", (0, 0)),
    phrase("strangers", "untrusted clients", (0, 0)),
    phrase("heard", "received, seen", (0, 0)),
    phrase("under way", "in flight", (0, 0)),
    phrase("anew", "from zero, again", (0, 0)),
    phrase("for ever", "permanently", (0, 0)),
    phrase("left alone", "ejected, unchanged", (0, 0)),
    phrase("passed over", "skipped", (0, 0)),
    phrase("put right", "fixed", (0, 0)),
    phrase("mended", "fixed", (0, 0)),
    phrase("written down", "logged, recorded", (0, 0)),
    phrase("for want of", "because of missing", (0, 0)),
    phrase("likewise", "also", (0, 0)),
];

/// Returns the lines of prose of a page: without blocks of code, and without code in a line.
fn prose_of_page(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // Every second part is between backticks.
            let parts: Vec<&str> = line.split('`').step_by(2).collect();
            lines.push(parts.join("` `").to_lowercase());
        }
    }
    lines
}

/// Returns the comments of a source, rustdoc included, without code in a line.
fn comments_of_source(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(comment) = line.strip_prefix("//") {
            let parts: Vec<&str> = comment.split('`').step_by(2).collect();
            lines.push(parts.join("` `").to_lowercase());
        }
    }
    lines
}

/// Returns the README, the pages of the documentation, and the pages for contributors.
fn pages() -> Vec<(PathBuf, Vec<String>)> {
    let names = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
    let mut paths: Vec<PathBuf> = names.iter().map(|it| workspace().join(it)).collect();
    files(&workspace().join("docs"), "md", &mut paths);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, prose_of_page(&text))
    };
    paths.into_iter().map(read).collect()
}

/// Returns the comments of all sources and tests.
fn comments() -> Vec<(PathBuf, Vec<String>)> {
    let mut paths = Vec::new();
    files(&workspace().join("crates"), "rs", &mut paths);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, comments_of_source(&text))
    };
    paths.into_iter().map(read).collect()
}

/// Adds the files below `folder` with this ending.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
}

/// Returns the places of a phrase, by path and number of the line.
fn places(texts: &[(PathBuf, Vec<String>)], phrase: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (path, lines) in texts {
        for (number, line) in (1..).zip(lines) {
            if has_words(line, phrase) {
                found.push(format!("{} ({number}): {line}", path.display()));
            }
        }
    }
    found
}

#[test]
fn prose_uses_plain_words() {
    let (pages, comments) = (pages(), comments());
    assert!(pages.len() > 20 && comments.len() > 100, "nothing was read");
    let mut wrong = Vec::new();
    for phrase in PHRASES {
        for (what, texts, max) in [
            ("pages", &pages, phrase.pages_max),
            ("comments", &comments, phrase.comments_max),
        ] {
            let found = places(texts, phrase.text);
            if found.len() > max {
                wrong.push(format!(
                    "`{}` is in {} lines of {what}, at most {max} may have it. Write: {}. All:\n{}",
                    phrase.text,
                    found.len(),
                    phrase.instead,
                    found.join("\n"),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn code_is_not_checked_as_prose() {
    let page = "Use `whoever`, whoever.\n```text\nwhoever\n```\nend";
    assert_eq!(prose_of_page(page), ["use ` `, whoever.", "end"]);
    let source = "/// Whoever.\nlet nobody = 1; // nobody\n    // Told.\n";
    assert_eq!(comments_of_source(source), ["/ whoever.", " told."]);
}
