//! Lines and words of YAML that cannot be misread.

use std::fmt::Write;

/// Words that some YAML parsers do not read as text.
const NOT_TEXT: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Prefixes of key parts. They form one word with the name, because no blank follows the colon.
const PARTS: [&str; 3] = ["descriptor:", "attr:", "header:"];

/// Escapes text that looks like a variable.
pub(super) fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

pub(super) fn comment(text: &mut String, what: &str) {
    let what = what.replace(char::is_control, " ");
    line(text, 0, &format!("# {what}"));
}

pub(super) fn line(text: &mut String, indent: usize, what: &str) {
    let _ = writeln!(text, "{:indent$}{what}", "");
}

/// Returns text as YAML, without quotes if it cannot be misread.
pub(super) fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let word = PARTS.iter().find_map(|part| text.strip_prefix(part));
    let word = word.unwrap_or(text);
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
    fn only_unambiguous_text_is_unquoted() {
        for plain in [
            "users",
            "message_type",
            "descriptor:to_number",
            "attr:project",
            "a/b.c-d",
        ] {
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
    fn a_comment_is_one_line_for_any_file_name() {
        let mut text = String::new();
        comment(&mut text, "from a\nlisten: {}\r");
        assert_eq!(text, "# from a listen: {} \n");
    }
}
