//! The fields of maps.

use crate::document::ImportedFile;
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, MapEntry, NodeKind, TextSpan, closest};

/// All words that are a field of some map.
const WORDS: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];

/// A kind of map, and its fields.
#[derive(Debug)]
pub(super) struct EnvoyMapFields {
    what: &'static str,
    words: &'static [&'static str],
}

/// The fields of a whole file.
pub(super) static ROOT: EnvoyMapFields = EnvoyMapFields {
    what: "at the top of a file",
    words: &["domain", "descriptors"],
};

/// The fields of an item of `descriptors`.
pub(super) static DESCRIPTOR: EnvoyMapFields = EnvoyMapFields {
    what: "in a descriptor",
    words: &[
        "key",
        "value",
        "rate_limit",
        "descriptors",
        "shadow_mode",
        "quota_mode",
        "detailed_metric",
        "value_to_metric",
        "share_threshold",
        "metadata",
    ],
};

/// The fields of `rate_limit`.
pub(super) static RATE_LIMIT: EnvoyMapFields = EnvoyMapFields {
    what: "in a `rate_limit`",
    words: &["unit", "requests_per_unit", "unlimited", "name", "replaces"],
};

/// The fields of an item of `replaces`.
pub(super) static REPLACES: EnvoyMapFields = EnvoyMapFields {
    what: "in `replaces`",
    words: &["name"],
};

/// The fields of a map.
#[derive(Debug)]
pub(super) struct EnvoyMap<'v> {
    value: ConfigValue<'v>,
    entries: &'v [MapEntry],
}

impl<'v> EnvoyMap<'v> {
    /// Reads the fields of a map. Reports words that are not a field of any map. Fields of other maps
    /// have no effect, as in envoyproxy/ratelimit, and are noted.
    pub(super) fn read(
        document: &mut ImportedFile<'_>,
        value: &ConfigValue<'v>,
        known: &EnvoyMapFields,
    ) -> Option<Self> {
        let NodeKind::Map(entries) = &value.node.kind else {
            document.refuse(value, "a map");
            return None;
        };
        for entry in entries {
            let word = entry.key.text.as_str();
            if !WORDS.contains(&word) {
                let spot = value.child(&entry.key, &entry.value).key_spot();
                document.error(spot, unknown(word, known));
            } else if !known.words.contains(&word) {
                let what = known.what;
                document.warn(entry.key.place, format!("`{word}` has no meaning {what}"));
            }
        }
        Some(Self {
            value: value.clone(),
            entries,
        })
    }

    /// Returns the value of a field, if it is set.
    pub(super) fn get(&self, name: &str) -> Option<ConfigValue<'v>> {
        let entry = self.entries.iter().find(|entry| entry.key.text == name)?;
        Some(self.value.child(&entry.key, &entry.value))
    }

    /// Returns the text of a field, unless it is empty.
    pub(super) fn text(
        &self,
        document: &mut ImportedFile<'_>,
        name: &str,
    ) -> Option<(String, ConfigValue<'v>)> {
        let value = self.get(name)?;
        let text = document.text(&value)?;
        Some((text.to_owned(), value))
    }

    /// Returns true if a field is absent or empty.
    pub(super) fn says_nothing(&self, name: &str) -> bool {
        self.get(name).is_none_or(|value| match &value.node.kind {
            NodeKind::Null => true,
            NodeKind::Text(text) => text.is_empty(),
            _ => false,
        })
    }

    /// Returns true if a flag is set.
    pub(super) fn flag(&self, document: &mut ImportedFile<'_>, name: &str) -> bool {
        self.get(name).is_some_and(|value| document.flag(&value))
    }

    /// Returns the position of the map.
    pub(super) fn spot(&self) -> (TextSpan, String) {
        self.value.spot()
    }
}

fn unknown(word: &str, known: &EnvoyMapFields) -> ConfigFault {
    let is_number = word.parse::<f64>().is_ok();
    let is_text = !is_number && !matches!(word, "" | "~" | "null" | "true" | "false");
    let message = if is_text {
        format!("config error, unknown key '{word}'")
    } else {
        format!("config error, key is not of type string: {word}")
    };
    let meant = closest(word, known.words.iter().copied());
    let elsewhere = || closest(word, WORDS);
    ConfigFault::new(message).help(match meant.or_else(elsewhere) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{} belong {}", listed(known.words), known.what),
    })
}

/// Joins words: "`a`, `b` and `c`".
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
