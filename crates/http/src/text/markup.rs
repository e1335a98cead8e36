//! Text in HTML and XML, and text in nothing at all.

/// Writes `text` escaped for HTML and XML, for text and for attributes. Control characters, which
/// XML cannot hold, are dropped.
///
/// ```
/// let mut out = Vec::new();
/// tidegate_http::text::write_markup("<b>'&", &mut out);
/// assert_eq!(out, b"&lt;b&gt;&#39;&amp;");
/// ```
pub fn write_markup(text: &str, out: &mut Vec<u8>) {
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\'' => out.extend_from_slice(b"&#39;"),
            c => write_char(c, out),
        }
    }
}

/// Writes `text` without its control characters.
pub fn write_plain(text: &str, out: &mut Vec<u8>) {
    for c in text.chars().filter(|c| !c.is_control()) {
        write_char(c, out);
    }
}

/// Writes one character, escaped if markup requires it.
fn write_char(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_values_are_escaped() {
        let text = "a<script x=\"1\" y='2'>&\u{0}\u{1b}\u{85}\nü";
        let mut markup = Vec::new();
        write_markup(text, &mut markup);
        assert_eq!(
            String::from_utf8(markup).expect("text"),
            "a&lt;script x=&quot;1&quot; y=&#39;2&#39;&gt;&amp;ü"
        );
        let mut plain = Vec::new();
        write_plain(text, &mut plain);
        assert_eq!(
            String::from_utf8(plain).expect("text"),
            "a<script x=\"1\" y='2'>&ü"
        );
    }
}
