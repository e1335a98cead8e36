//! Numbers of any width: in JSON, as text, and in the export format of `MongoDB`.

use crate::document::ImportedFile;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// The keys in which `MongoDB` exports numbers whose type JSON cannot represent.
const WIDTHS: [&str; 4] = [
    "$numberLong",
    "$numberInt",
    "$numberDouble",
    "$numberDecimal",
];

/// Reads a whole number above 0.
pub(super) fn positive(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<u64> {
    let written = written(value);
    let number = written.and_then(whole).filter(|number| *number > 0);
    if number.is_none() && !matches!(value.node.kind, NodeKind::Broken) {
        let found = match written {
            Some(text) => ConfigFault::quote(text),
            None => value.node.noun().to_owned(),
        };
        let message = format!(
            "{} is {found}; expected a whole number above 0",
            value.name()
        );
        document.error(value.spot(), ConfigFault::new(message));
    }
    number
}

fn written<'v>(value: &ConfigValue<'v>) -> Option<&'v str> {
    match &value.node.kind {
        NodeKind::Text(text) => Some(text),
        NodeKind::Map(entries) => match entries.as_slice() {
            [entry] if WIDTHS.contains(&entry.key.text.as_str()) => entry.value.as_text(),
            _ => None,
        },
        NodeKind::Null | NodeKind::List(_) | NodeKind::Broken => None,
    }
}

/// Parses `100`, and also `100.0`, the form of a double.
fn whole(text: &str) -> Option<u64> {
    let (digits, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_whole =
        is_number(digits) && is_number(fraction) && fraction.bytes().all(|it| it == b'0');
    is_whole.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_number_may_have_any_width_if_it_is_an_integer() {
        assert_eq!(whole("100"), Some(100));
        assert_eq!(whole("100.00"), Some(100));
        for text in [
            "",
            "1.5",
            "-1",
            "1e3",
            "1.",
            ".0",
            "ten",
            "99999999999999999999",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
