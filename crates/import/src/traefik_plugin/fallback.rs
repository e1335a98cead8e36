//! Rewrites the document of limits as strict JSON, without anything that a line break, a comment or a
//! variable could corrupt.

use super::limits::{PluginLimit, PluginLimits};
use std::fmt::Write;

/// Returns the limits as the plugin's own document, in strict JSON.
pub(super) fn lines(found: &PluginLimits) -> Vec<String> {
    let mut lines = vec!["{ \"limits\": [".to_owned()];
    let last = found.0.len().saturating_sub(1);
    for (at, limit) in found.0.iter().enumerate() {
        let comma = if at == last { "" } else { "," };
        lines.push(format!("  {}{comma}", document_of(limit)));
    }
    lines.push("] }".to_owned());
    lines
}

fn document_of(limit: &PluginLimit) -> String {
    let rules = limit.rules.iter().map(|rule| {
        let condition = rule.condition();
        let path = condition.path.map(|path| ("urlpathpattern", path));
        let header = condition.header.into_iter();
        let header = header.flat_map(|(name, value)| [("headerkey", name), ("headerval", value)]);
        let fields = path.into_iter().chain(header);
        let fields: Vec<String> = fields
            .map(|(field, text)| format!("\"{field}\": {}", json(&text)))
            .collect();
        format!("{{ {} }}", fields.join(", "))
    });
    let rules: Vec<String> = rules.collect();
    format!(
        "{{ \"rules\": [{}], \"limit\": {} }}",
        rules.join(", "),
        limit.amount
    )
}

/// Returns text as JSON, in visible ASCII and without anything that looks like a variable.
fn json(text: &str) -> String {
    let mut quoted = String::from("\"");
    for unit in text.encode_utf16() {
        let letter = u8::try_from(unit)
            .ok()
            .filter(|it| (b' '..=b'~').contains(it));
        match letter {
            Some(letter @ (b'"' | b'\\')) => quoted.extend(['\\', char::from(letter)]),
            Some(letter) => quoted.push(char::from(letter)),
            None => {
                let _ = write!(quoted, "\\u{unit:04x}");
            }
        }
    }
    quoted.push('"');
    quoted.replace("${", "\\u0024{")
}
