//! No text causes a panic, an endless loop or a flood of errors.

use crate::good::EVERYTHING;
use proptest::prelude::*;
use tidegate_config::Config;
use tidegate_config::{NoEnvironment, explain};

/// Reads a text, and formats the result.
fn read(text: &str) {
    match Config::parse(text, "x", &NoEnvironment) {
        Ok(config) => assert!(!explain(&config).is_empty()),
        Err(errors) => {
            assert!(errors.count() > 0);
            let shown = errors.to_string();
            assert!(shown.len() < 200_000, "{} bytes", shown.len());
            assert!(!shown.contains('\u{1b}'), "{shown:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_rejected(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn any_yaml_like_text_is_parsed_or_rejected(
        text in r#"([a-z]{1,3}|[ \n\t:{}\[\],&*!|>'"%@`#?-]|- |: |\n  ){0,60}"#,
    ) {
        read(&text);
    }

    #[test]
    fn any_mutation_of_a_valid_file_is_parsed_or_rejected(
        at in 0..EVERYTHING.len(),
        length in 0..40_usize,
        put in r"[ -~\n\t\x1b]{0,12}",
    ) {
        let mut text = EVERYTHING.to_owned();
        let end = (at + length).min(text.len());
        text.replace_range(at..end, &put);
        read(&text);
    }
}

#[test]
fn large_and_deep_texts_are_rejected_quickly() {
    const MANY: usize = 1 << 20;
    for text in [
        "[".repeat(MANY),
        "{a: ".repeat(MANY / 4),
        "- ".repeat(MANY / 2),
        "? ".repeat(MANY / 2),
        "a".repeat(MANY),
        "a: b\n".repeat(MANY / 5),
        format!("policies: [{}]", "x, ".repeat(MANY / 3)),
        format!("policies: [{}]", "{}, ".repeat(MANY / 4)),
        format!("a: \"{}", "\\x1b".repeat(MANY / 4)),
        "&a *a ".repeat(MANY / 6),
        "#".repeat(MANY),
        "\u{feff}".repeat(MANY / 3),
        "x".repeat((4 << 20) + 1),
    ] {
        read(&text);
    }
}

#[test]
fn a_thousand_limits_are_parsed_quickly() {
    use std::fmt::Write as _;
    let mut text = "policies: [{ name: p, limits: [\n".to_owned();
    for number in 0..1_000 {
        writeln!(
            text,
            "{{ name: l{number}, match: {{ path: /a{number}/* }}, rate: 1/s }},"
        )
        .unwrap();
    }
    text.push_str("] }]");
    let config = Config::parse(&text, "x", &NoEnvironment).unwrap();
    assert_eq!(config.policies[0].limits.len(), 1_000);
}
