//! The texts that people read: every log line has a stable event that the reference lists, and messages use
//! plain words. Reads the sources of all crates.
//!
//! | module | what it checks |
//! |---|---|
//! | this one | log lines, and the texts in string literals |
//! | `prose` | pages and comments |
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod prose;

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Phrases that must not appear in messages, descriptions, help texts and metric help.
const FORBIDDEN: [&str; 29] = [
    "unless told",
    "whoever",
    "whomever",
    "whatever",
    "somebody",
    "nobody",
    "everybody",
    "anybody",
    "those who",
    "as good as new",
    "kept out",
    "let in again",
    "served on",
    "came of",
    "becomes of",
    "became of",
    "how it stands",
    "own word",
    "of ours",
    "for ever",
    "anew",
    "under way",
    "for want of",
    "left alone",
    "passed over",
    "put right",
    "given back",
    "strangers",
    "door",
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the production code of all crates that ship, by path.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let is_for_tests = path.ends_with("testkit") || path.ends_with("store-laws");
        if !is_for_tests {
            collect(&path.join("src"), &mut found);
        }
    }
    assert!(found.len() > 100, "the sources were not found");
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, without_tests(&text).to_owned()));
        }
    }
}

/// Cuts the module of tests off, which is the last one of a file.
fn without_tests(text: &str) -> &str {
    let mut ends = text.match_indices("\n#[cfg(test)]");
    let end = ends.find(|(at, found)| {
        let rest = text.get(at + found.len()..).unwrap_or_default();
        let module = rest.lines().find(|line| line.starts_with("mod "));
        module.is_some_and(|line| line.ends_with('{'))
    });
    end.map_or(text, |(at, _)| text.split_at(at).0)
}

/// Returns true if `text` has `phrase` as whole words.
fn has_words(text: &str, phrase: &str) -> bool {
    let is_word = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let after = rest.chars().nth(phrase.chars().count());
        !is_word(before.chars().next_back()) && !is_word(after)
    })
}

/// A call of a log macro.
#[derive(Debug)]
struct LogCall {
    level: &'static str,
    /// The name of the event, unless the call has none.
    event: Option<String>,
    fields: BTreeSet<String>,
}

/// Adds the calls of log macros in `code`.
fn add_log_calls(code: TokenStream, calls: &mut Vec<LogCall>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        add_log_calls(group.stream(), calls);
        let before = at.checked_sub(2).and_then(|at| tokens.get(at..at + 2));
        if let Some([TokenTree::Ident(name), TokenTree::Punct(bang)]) = before
            && bang.as_char() == '!'
            && let Some(level) = LEVELS.into_iter().find(|level| name == level)
        {
            calls.push(log_call(level, group.stream()));
        }
    }
}

/// Reads the arguments of a log macro: the event, the fields, and the message.
fn log_call(level: &'static str, arguments: TokenStream) -> LogCall {
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma = |token: &TokenTree| token.to_string() == ",";
    let mut call = LogCall {
        level,
        event: None,
        fields: BTreeSet::new(),
    };
    for argument in arguments.split(is_comma) {
        // `field`, `%field`, `?field` or `field = value`; names may have dots.
        let name = argument.split(|token| token.to_string() == "=").next();
        let name: String = name
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        match argument {
            [TokenTree::Literal(_), ..] | [] => break,
            [_, _, TokenTree::Literal(value)] if name == "event" => {
                call.event = Some(value.to_string().trim_matches('"').to_owned());
            }
            _ => {
                call.fields
                    .insert(name.trim_start_matches(['%', '?']).to_owned());
            }
        }
    }
    call
}

/// Returns the string literals of `code`, with escapes as they are written.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in code.lines() {
        let code = line.trim_start();
        if !code.starts_with("//") {
            found.push(line);
        }
    }
    let code = found.join("\n");
    // Every second part is inside quotes. Quotes as characters or escapes are taken out first.
    let code = code.replace("\\\"", "'").replace("'\"'", "' '");
    code.split('"')
        .skip(1)
        .step_by(2)
        .map(|text| {
            let text = text.split("\\\n").map(str::trim_start);
            text.collect::<Vec<_>>().concat()
        })
        .collect()
}

#[test]
fn every_log_line_has_an_event_and_the_reference_lists_all_of_them() {
    let mut events: BTreeMap<String, (&str, BTreeSet<String>)> = BTreeMap::new();
    for (path, code) in sources() {
        let mut calls = Vec::new();
        add_log_calls(code.parse().unwrap(), &mut calls);
        for call in calls {
            let place = path.display();
            let event = call.event.unwrap_or_else(|| {
                panic!("{place}: no event in {}!: {:?}", call.level, call.fields)
            });
            let is_snake_case = |it: char| it.is_ascii_lowercase() || it == '_';
            assert!(event.chars().all(is_snake_case), "{event}");
            let known = events
                .entry(event.clone())
                .or_insert((call.level, BTreeSet::new()));
            assert_eq!(known.0, call.level, "{event}: two levels");
            known.1.extend(call.fields);
        }
    }
    let page = fs::read_to_string(workspace().join("docs/reference/log-events.md")).unwrap();
    let mut listed = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let event = cells.next().unwrap().trim_matches('`').to_owned();
        let level = cells.next().unwrap();
        let level = LEVELS.into_iter().find(|it| *it == level).unwrap();
        let fields = cells.nth(1).unwrap().split('`').skip(1).step_by(2);
        let fields = fields.map(str::to_owned).collect();
        let other = listed.insert(event.clone(), (level, fields));
        assert!(other.is_none(), "{event}: two rows");
    }
    for (event, known) in &events {
        assert_eq!(
            listed.get(event),
            Some(known),
            "{event}: the page, and the sources"
        );
    }
    let unknown: Vec<_> = listed
        .keys()
        .filter(|event| !events.contains_key(*event))
        .collect();
    assert!(unknown.is_empty(), "the sources have no {unknown:?}");
}

#[test]
fn messages_use_plain_words() {
    let mut found = Vec::new();
    for (path, code) in sources() {
        for text in literals(&code) {
            let lower = text.to_lowercase();
            let is_sentence = lower.contains(' ');
            for phrase in FORBIDDEN.iter().filter(|_| is_sentence) {
                if has_words(&lower, phrase) {
                    found.push(format!("{}: `{phrase}` in {text:?}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
