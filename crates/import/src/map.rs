//! The fields of a map of another system.
//!
//! Names of fields are compared as systems written in Go or Java do: case and dashes are ignored. Those
//! systems also ignore unknown fields. Here an unknown field is noted. If it looks like a misspelled
//! field, it is an error: its author intended it, and the map does not mean what it should.

use super::document::{ImportedFile, line};
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, MapEntry, NodeKind, TextSpan, YamlNode, closest};

/// The largest amount that is counted exactly.
pub(super) const AMOUNT_MAX: u64 = (1 << 53) - 1;

/// A kind of map, and its fields.
#[derive(Debug)]
pub(super) struct ImportMapFields {
    /// The name of the kind, such as "a rule".
    pub(super) what: &'static str,
    pub(super) fields: &'static [&'static str],
}

/// The fields of a map.
#[derive(Debug)]
pub(super) struct ImportMap<'v> {
    pub(super) value: ConfigValue<'v>,
    entries: &'v [MapEntry],
}

impl<'v> ImportMap<'v> {
    /// Reads the fields of a map.
    pub(super) fn read(
        document: &mut ImportedFile<'_>,
        value: &ConfigValue<'v>,
        known: &ImportMapFields,
    ) -> Option<Self> {
        let NodeKind::Map(entries) = &value.node.kind else {
            document.refuse(value, &format!("{}, which is a map", known.what));
            return None;
        };
        let map = Self {
            value: value.clone(),
            entries,
        };
        for (at, entry) in entries.iter().enumerate() {
            map.check(document, at, entry, known);
        }
        Some(map)
    }

    fn check(
        &self,
        document: &mut ImportedFile<'_>,
        at: usize,
        entry: &MapEntry,
        known: &ImportMapFields,
    ) {
        let word = entry.key.text.as_str();
        let is_same = |field: &str| plain(field) == plain(word);
        let place = entry.key.place;
        if known.fields.iter().any(|field| is_same(field)) {
            let before = self.entries.iter().take(at);
            if let Some(first) = before.into_iter().find(|other| is_same(&other.key.text)) {
                let fault = ConfigFault::new(format!(
                    "duplicate {}, written as {}",
                    ConfigFault::quote(word),
                    ConfigFault::quote(&first.key.text)
                ));
                let help = format!(
                    "the first is on line {}; remove one of them",
                    line(first.key.place)
                );
                document.error((place, String::new()), fault.help(help));
            }
        } else if let Some(meant) = closest(word, known.fields.iter().copied()) {
            let message = format!(
                "unknown field {} in {}",
                ConfigFault::quote(word),
                known.what
            );
            let fault = ConfigFault::new(message).help(format!("did you mean `{meant}`?"));
            document.error((place, String::new()), fault);
        } else {
            let text = format!(
                "{} in {} is skipped: it is not a known field",
                ConfigFault::quote(word),
                known.what
            );
            document.warn(place, text);
        }
    }

    /// Returns the value of a field, if it is set.
    pub(super) fn get(&self, name: &str) -> Option<ConfigValue<'v>> {
        let name = plain(name);
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| plain(&entry.key.text) == name)?;
        Some(self.value.child(&entry.key, &entry.value))
    }

    /// Returns the value of a field, unless it is empty.
    pub(super) fn said(&self, name: &str) -> Option<ConfigValue<'v>> {
        self.get(name).filter(|value| !is_nothing(value.node))
    }

    /// Returns the value of a required field.
    pub(super) fn required(
        &self,
        document: &mut ImportedFile<'_>,
        name: &str,
        known: &ImportMapFields,
    ) -> Option<ConfigValue<'v>> {
        let value = self.said(name);
        if value.is_none() {
            let spot = self.get(name).map_or_else(|| self.spot(), |it| it.spot());
            let fault = ConfigFault::new(format!("{} needs `{name}`", known.what));
            document.error(spot, fault);
        }
        value
    }

    /// Returns the text of a field, unless it is empty.
    pub(super) fn text(&self, document: &mut ImportedFile<'_>, name: &str) -> Option<&'v str> {
        document.text(&self.said(name)?)
    }

    /// Returns the position of the map.
    pub(super) fn spot(&self) -> (TextSpan, String) {
        self.value.spot()
    }
}

/// Returns true if a value is empty: `null`, or an empty text.
pub(super) fn is_nothing(node: &YamlNode) -> bool {
    match &node.kind {
        NodeKind::Null => true,
        NodeKind::Text(text) => text.is_empty(),
        _ => false,
    }
}

/// Reads a whole number above 0 and up to `most`.
pub(super) fn positive(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
    most: u64,
) -> Option<u64> {
    let number = match &value.node.kind {
        NodeKind::Text(text) if !document.is_quoted(value) => whole(text),
        NodeKind::Broken => return None,
        _ => None,
    };
    let number = number.filter(|number| (1..=most).contains(number));
    if number.is_none() {
        let found = match &value.node.kind {
            NodeKind::Text(text) => ConfigFault::quote(text),
            _ => value.node.noun().to_owned(),
        };
        let in_quotes = if document.is_quoted(value) {
            ", in quotes"
        } else {
            ""
        };
        let message = format!(
            "{} is {found}{in_quotes}; expected a whole number above 0",
            value.name()
        );
        let fault = match &value.node.kind {
            NodeKind::Text(text) if whole(text).is_some_and(|number| number > most) => {
                ConfigFault::new(message).help(format!("at most {most} is supported"))
            }
            _ => ConfigFault::new(message),
        };
        document.error(value.spot(), fault);
    }
    number
}

/// Parses a whole number of digits only.
fn whole(text: &str) -> Option<u64> {
    let is_decimal = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_decimal.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns a name in the form in which it is compared. A leading underscore is part of it: `_id` is not
/// `id`.
pub(super) fn plain(name: &str) -> String {
    let letters = name.char_indices();
    let letters = letters.filter(|(at, c)| *at == 0 || !matches!(c, '-' | '_'));
    letters.map(|(_, c)| c.to_ascii_lowercase()).collect()
}
