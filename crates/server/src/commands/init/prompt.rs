//! Questions at a terminal.

use clap::ValueEnum;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use tidegate_control::failure::Failure;

/// The number of invalid answers after which it stops.
const TRIES_MAX: u32 = 5;

/// Asks at a terminal: one line for each choice, empty for the default.
pub(super) struct TerminalPrompt<I, O> {
    input: I,
    output: O,
}

impl<I: BufRead, O: Write> TerminalPrompt<I, O> {
    pub(super) fn new(input: I, output: O) -> Self {
        Self { input, output }
    }

    /// Asks for one of the values of a flag.
    pub(super) fn choose<T: ValueEnum>(
        &mut self,
        question: &str,
        default: &T,
    ) -> Result<T, Failure> {
        let values = T::value_variants().iter();
        let values = values.filter_map(ValueEnum::to_possible_value);
        let mut names = Vec::new();
        let mut text = format!("{question}\n");
        for value in values {
            let name = value.get_name().to_owned();
            let help = value
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let _ = writeln!(text, "  {name:<12}{help}");
            names.push(name);
        }
        let default = default.to_possible_value();
        let default = default.as_ref().map_or("", |value| value.get_name());
        let expected = names.join(", ");
        self.ask(&text, default, |answer| {
            T::from_str(answer, true).map_err(|_| format!("`{answer}` is not one of {expected}"))
        })
    }

    /// Asks for a text that `check` accepts.
    pub(super) fn text(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<String, Failure> {
        self.ask(&format!("{question} "), default, |answer| {
            check(answer).map(|()| answer.to_owned())
        })
    }

    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let broken = |error: io::Error| Failure::runtime(format!("cannot ask: {error}"));
        for _ in 0..TRIES_MAX {
            write!(self.output, "{question}[{default}]: ").map_err(broken)?;
            self.output.flush().map_err(broken)?;
            let mut line = String::new();
            if self.input.read_line(&mut line).map_err(broken)? == 0 {
                return Err(Failure::input("the input ended; nothing is written"));
            }
            let answer = match line.trim() {
                "" => default,
                answer => answer,
            };
            match read(answer) {
                Ok(value) => return Ok(value),
                Err(why) => writeln!(self.output, "{why}").map_err(broken)?,
            }
        }
        Err(Failure::input("no valid answer; nothing is written"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChosenKey;
    use super::TerminalPrompt;

    #[test]
    fn an_empty_line_is_the_default_and_an_invalid_one_repeats_the_prompt() {
        let mut shown = Vec::new();
        let input = "\nnobody\nAPI-key\n".as_bytes();
        let mut prompt = TerminalPrompt::new(input, &mut shown);
        assert_eq!(
            prompt.choose("Key?", &ChosenKey::User).unwrap(),
            ChosenKey::User
        );
        assert_eq!(
            prompt.choose("Key?", &ChosenKey::Ip).unwrap(),
            ChosenKey::ApiKey
        );
        let failure = prompt.choose("Key?", &ChosenKey::Ip).unwrap_err();
        assert!(failure.to_string().contains("the input ended"), "{failure}");
        let shown = String::from_utf8(shown).unwrap();
        assert!(
            shown.starts_with("Key?\n  ip          Client address\n"),
            "{shown}"
        );
        assert!(shown.contains("[user]: "), "{shown}");
        assert!(
            shown.contains("`nobody` is not one of ip, user, api-key\n"),
            "{shown}"
        );
    }

    #[test]
    fn the_prompt_stops_after_some_invalid_answers() {
        let input = "x\n".repeat(100);
        let mut prompt = TerminalPrompt::new(input.as_bytes(), Vec::new());
        let failure = prompt
            .text("Rate", "1/s", |_| Err("no".to_owned()))
            .unwrap_err();
        assert!(failure.to_string().contains("no valid answer"), "{failure}");
        assert_eq!(
            String::from_utf8(prompt.output)
                .unwrap()
                .matches("Rate")
                .count(),
            5
        );
    }
}
