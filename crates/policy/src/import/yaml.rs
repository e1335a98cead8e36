//! Drafts as text: YAML as a person would write it.

use super::draft::{KeyDraft, LimitDraft, PolicyDraft, Step, Whom};
use super::note::Note;
use std::fmt::Write;

/// The doors that the other limiters have, and a store that answers before Envoy gives up, which is
/// after 20 ms unless told.
const BASE: &str = "\
listen:
  http: 127.0.0.1:8080
  grpc: 127.0.0.1:8081
store:
  timeout: 10ms
";

/// Words that other readers of YAML take for something else than text.
const NOT_TEXT: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// The whole configuration.
pub(super) fn write(from: &str, policies: &[PolicyDraft], notes: &[Note]) -> String {
    let mut text = String::new();
    comment(&mut text, &format!("Translated from {from}"));
    for note in notes {
        comment(&mut text, &note.to_string());
    }
    text.push_str(BASE);
    text.push_str("policies:\n");
    for policy in policies {
        line(&mut text, 2, &format!("- name: {}", quote(&policy.name)));
        if policy.domain != policy.name {
            line(
                &mut text,
                4,
                &format!("domain: {}", quote(&escaped(&policy.domain))),
            );
        }
        let evaluate = if policy.each { "each" } else { "all" };
        line(&mut text, 4, &format!("evaluate: {evaluate}"));
        line(&mut text, 4, "limits:");
        for limit in &policy.limits {
            write_limit(&mut text, limit);
        }
    }
    text
}

fn write_limit(text: &mut String, limit: &LimitDraft) {
    line(text, 6, &format!("- name: {}", quote(&limit.name)));
    let mut field = |field: String| line(text, 8, &field);
    match &limit.whom {
        Whom::Nobody => {
            field("enabled: false".to_owned());
            return field("rate: 1/s".to_owned());
        }
        Whom::Everybody => {}
        Whom::Path(steps) => {
            let steps: Vec<String> = steps.iter().map(step).collect();
            field(format!("match: {{ descriptor: [{}] }}", steps.join(", ")));
        }
        Whom::Holds(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| pair(key, value));
            let pairs: Vec<String> = pairs.collect();
            field(format!(
                "match: {{ descriptor: {{ {} }} }}",
                pairs.join(", ")
            ));
        }
    }
    if limit.rates.is_empty() {
        field("rate: unlimited".to_owned());
    } else {
        write_counting(&mut field, limit);
    }
    if let Some(mode) = limit.mode {
        field(format!("mode: {mode}"));
    }
    if !limit.replaces.is_empty() {
        let names: Vec<String> = limit.replaces.iter().map(|name| quote(name)).collect();
        field(format!("replaces: [{}]", names.join(", ")));
    }
}

/// Whose bucket, how much, and how it counts.
fn write_counting(field: &mut impl FnMut(String), limit: &LimitDraft) {
    match &limit.key {
        KeyDraft::Global => field("key: global".to_owned()),
        KeyDraft::Descriptor => field("key: descriptor".to_owned()),
        KeyDraft::Entries { parts, or_skip } => {
            let parts: Vec<String> = parts.iter().map(|part| quote(&escaped(part))).collect();
            match parts.as_slice() {
                [part] => field(format!("key: {part}")),
                parts => field(format!("key: [{}]", parts.join(", "))),
            }
            if *or_skip {
                field("missing: skip".to_owned());
            }
        }
    }
    if let [rate] = limit.rates.as_slice() {
        field(format!("rate: {}", rate.text));
    } else {
        let bands = limit.rates.iter().map(|rate| match &rate.label {
            Some(label) => format!("{{ rate: {}, label: {} }}", rate.text, quote(label)),
            None => rate.text.clone(),
        });
        let bands: Vec<String> = bands.collect();
        field(format!("bands: [{}]", bands.join(", ")));
    }
    field("algorithm: fixed-window".to_owned());
    field(format!("align: {}", limit.align));
}

fn step(step: &Step) -> String {
    match &step.value {
        Some(value) => pair(&step.key, value),
        // A key that looks like a pair is said to be none.
        None if step.key.contains('=') => pair(&step.key, ""),
        None => quote(&escaped(&step.key)),
    }
}

/// Keys stand for themselves; values may name variables, and these do not.
fn pair(key: &str, value: &str) -> String {
    format!("{}: {}", quote(key), quote(&escaped(value)))
}

/// Text that looks like a variable is none.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn comment(text: &mut String, what: &str) {
    let what = what.replace(char::is_control, " ");
    line(text, 0, &format!("# {what}"));
}

fn line(text: &mut String, indent: usize, what: &str) {
    let _ = writeln!(text, "{:indent$}{what}", "");
}

/// Text as YAML: bare where nobody could take it for anything else.
fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    // `descriptor:NAME` is one word, for no blank follows the colon.
    let word = text.strip_prefix("descriptor:").unwrap_or(text);
    let starts_well = word.starts_with(|c: char| c.is_ascii_alphabetic());
    let means_text = !NOT_TEXT.contains(&word.to_ascii_lowercase().as_str());
    if starts_well && means_text && word.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            _ if c.is_alphanumeric() => quoted.push(c),
            _ => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{comment, quote};

    #[test]
    fn only_what_could_be_nothing_else_stands_without_quotes() {
        for plain in ["users", "message_type", "descriptor:to_number", "a/b.c-d"] {
            assert_eq!(quote(plain), plain);
        }
        for (text, quoted) in [
            ("", r#""""#),
            ("null", r#""null""#),
            ("Yes", r#""Yes""#),
            ("1", r#""1""#),
            ("files/*", r#""files/*""#),
            ("a: b", r#""a: b""#),
            ("a\"\\\n", r#""a\"\\\U0000000a""#),
            ("é\u{2028}", "\"é\\U00002028\""),
            ("descriptor:no", r#""descriptor:no""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn a_comment_is_one_line_whatever_a_file_is_called() {
        let mut text = String::new();
        comment(&mut text, "from a\nlisten: {}\r");
        assert_eq!(text, "# from a listen: {} \n");
    }
}
