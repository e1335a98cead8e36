//! Colours of output for people.
//!
//! Texts get their styles always. They are printed through `anstream`, which removes them unless the stream
//! is a terminal, and obeys `--color`, `NO_COLOR` and `CLICOLOR_FORCE`.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::io;

/// A good result.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();

/// An error, or a refusal.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// A warning.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();

/// A heading.
pub(crate) const HEAD: Style = Style::new().bold();

/// Returns `text` in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Applies `--color` to all later output.
pub(crate) fn choose(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Returns true if standard error shows colours.
pub(crate) fn on_stderr() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Returns the message of a failure for standard error: its prefix, headings of hints and marks of positions in colours.
pub fn failure(text: &str) -> String {
    format!("{} {}", paint(BAD, "tidegate:"), problem(text, BAD))
}

/// Returns the message of a problem, with its hint and the mark of its position in colours.
pub(crate) fn problem(text: &str, mark: Style) -> String {
    let lines = text.lines().map(|line| {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if let Some(hint) = rest.strip_prefix("help:") {
            return format!("{indent}{}{hint}", paint(HEAD, "help:"));
        }
        match rest.split_once('^') {
            // The line below the excerpt: `|    ^^^^`.
            Some((before, after)) if before.trim() == "|" => {
                format!("{indent}{before}{}", paint(mark, &format!("^{after}")))
            }
            _ => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{BAD, HEAD, failure, paint};

    #[test]
    fn hints_and_markers_are_coloured_and_the_text_is_unchanged() {
        let text = "a.yaml:1:3: `x^2` is wrong\n    1 | x^2\n      |  ^^\n   help: write y^2";
        let styled = failure(text);
        let plain = anstream::adapter::strip_str(&styled).to_string();
        assert_eq!(plain, format!("tidegate: {text}"));
        for part in [
            paint(BAD, "tidegate:"),
            paint(BAD, "^^"),
            format!("   {} write", paint(HEAD, "help:")),
            "\n    1 | x^2\n".to_owned(),
        ] {
            assert!(styled.contains(&part), "{styled}");
        }
    }
}
