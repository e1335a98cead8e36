//! Alerts for chat bots: a form with a message in Markdown.

use std::fmt::Write;

/// Returns the body of the form.
pub(super) fn body(message: &str) -> String {
    let mut body = "parse_mode=Markdown&message=".to_owned();
    push_encoded(&mut body, &escaped(message));
    body
}

/// Escapes all characters that have a meaning in Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '_' | '*' | '`' | '[') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn push_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => write!(out, "%{byte:02X}").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn a_message_is_a_field_of_a_form_and_no_markup() {
        assert_eq!(
            body("a_b & 10 %"),
            "parse_mode=Markdown&message=a%5C_b%20%26%2010%20%25"
        );
    }
}
