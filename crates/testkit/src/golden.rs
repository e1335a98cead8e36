//! Files that are generated and checked in. A test compares; with `TIDEGATE_BLESS=1` it rewrites them first.
//!
//! Pages of the documentation mix text with generated parts, between two comments:
//!
//! ```text
//! <!-- generated: limit -->
//! | field | type | default | meaning |
//! <!-- end -->
//! ```

#![expect(clippy::panic, reason = "a comparison fails by panicking, as tests do")]

use std::fs;
use std::path::{Path, PathBuf};

const START: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// Returns the path of a file in the folder `docs`.
///
/// ```
/// assert!(tidegate_testkit::golden::docs("README.md").exists());
/// ```
pub fn docs(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    root.join(path)
}

/// Compares `text` with the file at `path`. With `TIDEGATE_BLESS=1`, writes the file first, so that `git diff`
/// shows the change for review.
///
/// # Panics
///
/// If they differ.
pub fn compare(path: &Path, text: &str) {
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(path, text).expect("a golden file can be written");
    }
    let golden = fs::read_to_string(path).unwrap_or_default();
    let place = path.display();
    if let Some((line, is, should)) = first_difference(&golden, text) {
        let help = "run the test with TIDEGATE_BLESS=1, and read the difference";
        panic!("{place}:{line}: {help}\n   is: {is}\n   should be: {should}");
    }
}

/// Returns the number of the first line that differs, and the line in both texts.
fn first_difference<'a>(is: &'a str, should: &'a str) -> Option<(usize, &'a str, &'a str)> {
    // Line ends belong to the lines, so that a missing last one is a difference.
    let mut ours = is.split_inclusive('\n');
    let mut theirs = should.split_inclusive('\n');
    (1..).find_map(|number| match (ours.next(), theirs.next()) {
        (None, None) => Some(None),
        (one, other) if one == other => None,
        (one, other) => {
            let text = |line: Option<&'a str>| line.unwrap_or("(nothing)").trim_end_matches('\n');
            Some(Some((number, text(one), text(other))))
        }
    })?
}

/// Compares each generated part of the page at `path` with the text that `write` returns for its name.
///
/// The text between the parts is not compared, and stays when the parts are rewritten. A page belongs to one
/// test: two that rewrite it at the same time would lose a part.
///
/// # Panics
///
/// If they differ, or if a part has no end.
pub fn compare_parts(path: &Path, write: impl FnMut(&str) -> String) {
    let page = fs::read_to_string(path).expect("the page exists");
    compare(path, &fill(&page, write));
}

/// Returns the names of the generated parts of a page, in order.
pub fn parts(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(part)
}

/// Returns the anchor that a heading of a page gets.
///
/// ```
/// assert_eq!(tidegate_testkit::golden::anchor("## Tokens (JWT)"), "tokens-jwt");
/// ```
pub fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let is_kept = |it: &char| it.is_ascii_alphanumeric() || " _-".contains(*it);
    text.chars()
        .filter(is_kept)
        .collect::<String>()
        .replace(' ', "-")
}

/// Returns the page with the text of `write` in each generated part.
fn fill(page: &str, mut write: impl FnMut(&str) -> String) -> String {
    let mut filled = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        if let Some(name) = part(line) {
            assert!(lines.any(|line| line == END), "{name}: no {END}");
            let text = write(name);
            filled.push('\n');
            filled.push_str(text.trim());
            filled.push_str("\n\n");
            filled.push_str(END);
            filled.push('\n');
        }
    }
    filled
}

/// Returns the name of the part that starts at `line`.
fn part(line: &str) -> Option<&str> {
    line.strip_prefix(START)?.strip_suffix(" -->")
}

#[cfg(test)]
mod tests {
    use super::{fill, first_difference, parts};

    const PAGE: &str = "# Page\n\n<!-- generated: a -->\nold\n<!-- end -->\n\nBetween.\n\n<!-- generated: b c -->\n<!-- end -->\n";

    #[test]
    fn the_first_different_line_is_shown() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(
            first_difference("a\nb\nd\n", "a\nc\ne\n"),
            Some((2, "b", "c"))
        );
        assert_eq!(
            first_difference("a\n", "a\nb\n"),
            Some((2, "(nothing)", "b"))
        );
        assert_eq!(first_difference("a", "a\n"), Some((1, "a", "a")));
    }

    #[test]
    fn generated_parts_are_replaced_and_the_rest_is_kept() {
        let filled = fill(PAGE, |name| format!("[{name}]\n"));
        let expected = "# Page\n\n<!-- generated: a -->\n\n[a]\n\n<!-- end -->\n\nBetween.\n\n<!-- generated: b c -->\n\n[b c]\n\n<!-- end -->\n";
        assert_eq!(filled, expected);
        assert_eq!(fill(expected, |name| format!("[{name}]")), expected);
        assert_eq!(parts(PAGE).collect::<Vec<_>>(), ["a", "b c"]);
    }

    #[test]
    #[should_panic(expected = "a: no <!-- end -->")]
    fn a_part_without_an_end_is_an_error() {
        fill("<!-- generated: a -->\ntext\n", str::to_owned);
    }
}
