//! Names of policies and limits. Tidegate's names are more restricted than those of other systems.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::redact::is_secret_subject;

/// The longest name that the configuration allows, in bytes.
const NAME_MAX: usize = 64;

/// The number of hash digits that distinguish equal names.
const DIGITS: usize = 8;

/// A request for a name.
#[derive(Debug)]
pub(super) struct NameRequest {
    text: String,
    /// The exact identity of the item, including everything that the text omits.
    of: String,
    is_given: bool,
}

impl NameRequest {
    /// Requests the given name `text`, which is also the item's identity.
    pub(super) fn given(text: &str) -> Self {
        Self::given_to(text, text.to_owned())
    }

    /// Requests the given name `text`, which other items may also have, for the item with the identity
    /// `of`.
    pub(super) fn given_to(text: &str, of: String) -> Self {
        Self {
            text: text.to_owned(),
            of,
            is_given: true,
        }
    }

    /// Requests a made-up name for the item with the identity `of`: `text` describes it briefly.
    pub(super) fn made_up(text: String, of: String) -> Self {
        Self {
            text,
            of,
            is_given: false,
        }
    }

    /// Returns the text that must be unique for the item to get its name: the exact text if it is
    /// given, otherwise its slug.
    fn said(&self) -> String {
        if self.is_given {
            self.text.clone()
        } else {
            slug(&self.text)
        }
    }

    /// Returns true if the text describes the item completely, so that it rarely describes another one.
    fn is_whole(&self) -> bool {
        let length = letters(&self.text).len();
        self.of.is_ascii() && (1..=NAME_MAX).contains(&length)
    }
}

/// Returns the names of all items, in order. No item gets a `reserved` name.
///
/// A name identifies a bucket. So it depends on the item itself, not on its position or its neighbours:
/// an added item never takes the name of another.
///
/// - A given name that is valid in Tidegate stays unchanged.
/// - Any other given name ends with a hash of itself.
/// - A name given to several items ends with a hash of each item's identity.
/// - A made-up name ends with a hash of the identity if it does not describe the item completely, or if
///   another item would get the same name.
pub(super) fn all(wanted: &[NameRequest], reserved: &[&str]) -> Vec<String> {
    let mut names = TakenNames {
        taken: reserved.iter().map(|&name| name.to_owned()).collect(),
        said: BTreeMap::new(),
        hashed: BTreeMap::new(),
    };
    for it in wanted {
        let count = names.said.entry((it.is_given, it.said())).or_default();
        *count = count.saturating_add(1);
    }
    // First the names that stay, then the other given ones, so that no made-up name takes one of them.
    let called: Vec<Option<String>> = wanted.iter().map(|it| names.kept(it)).collect();
    let called = called.into_iter().zip(wanted);
    let called: Vec<Option<String>> = called
        .map(|(name, it)| name.or_else(|| names.changed(it)))
        .collect();
    let called = called.into_iter().zip(wanted);
    called
        .map(|(name, it)| name.unwrap_or_else(|| names.made_up(it)))
        .collect()
}

/// The names that are taken.
#[derive(Debug)]
struct TakenNames {
    taken: BTreeSet<String>,
    /// The number of items that request each text, separately for given and made-up names.
    said: BTreeMap<(bool, String), usize>,
    /// The number of times that a hash of each identity was used.
    hashed: BTreeMap<String, usize>,
}

impl TakenNames {
    /// Returns a given name unchanged, if possible.
    fn kept(&mut self, it: &NameRequest) -> Option<String> {
        let name = it.text.as_str();
        if !it.is_given || slug(name) != name || !self.is_only(it) {
            return None;
        }
        self.taken.insert(name.to_owned()).then(|| name.to_owned())
    }

    /// Returns a replacement for a given name.
    fn changed(&mut self, it: &NameRequest) -> Option<String> {
        let of = if self.is_only(it) { &it.text } else { &it.of };
        it.is_given.then(|| self.by_hash(&it.text, of))
    }

    /// Returns a made-up name.
    fn made_up(&mut self, it: &NameRequest) -> String {
        let name = slug(&it.text);
        let is_enough = it.is_whole() && self.is_only(it);
        if is_enough && self.taken.insert(name.clone()) {
            return name;
        }
        self.by_hash(&it.text, &it.of)
    }

    fn is_only(&self, it: &NameRequest) -> bool {
        let uses = self.said.get(&(it.is_given, it.said()));
        uses.is_none_or(|count| *count == 1)
    }

    /// Returns the slug of a text, followed by a hash of the identity.
    fn by_hash(&mut self, text: &str, of: &str) -> String {
        let plain = slug(text);
        let room = NAME_MAX.saturating_sub(DIGITS.saturating_add(1));
        let stem = plain.get(..room).unwrap_or(&plain).trim_end_matches(ENDS);
        let count = self.hashed.entry(of.to_owned()).or_default();
        loop {
            let hash = match *count {
                0 => short_hash(of),
                // The same identity once more, or a collision of hashes.
                again => short_hash(&format!("{of}\n{again}")),
            };
            *count = count.saturating_add(1);
            let name = format!("{stem}-{hash}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Returns a few digits of a hash, which distinguish a text from others and do not reveal it.
pub(super) fn short_hash(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes());
    hash.to_hex().chars().take(DIGITS).collect()
}

/// Makes up a name for these keys and values, such as `message_type-marketing.to_number`, before it is
/// made to fit. A value of only wildcards becomes `any`.
pub(super) fn made_up<'a>(entries: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let parts = entries.map(|(key, value)| {
        let is_any = |value: &str| value.chars().all(|c| c == '*');
        match value {
            None => letters(key),
            Some(value) if is_any(value) => format!("{}-any", letters(key)),
            Some(value) => format!("{}-{}", letters(key), letters(&shown(key, value))),
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Returns the value of a key for use in a name. Metrics, responses and keys make names public, so a
/// value that may be a secret is hashed.
pub(super) fn shown<'t>(key: &str, value: &'t str) -> Cow<'t, str> {
    if is_secret_subject(key) {
        Cow::from(short_hash(&format!("{key}\n{value}")))
    } else {
        Cow::from(value)
    }
}

/// Returns the exact identity of these keys and values.
pub(super) fn of<'a>(entries: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let parts = entries.map(|(key, value)| match value {
        None => key.to_owned(),
        Some(value) => format!("{key}\t{value}"),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Turns a text into a valid name.
fn slug(text: &str) -> String {
    let letters = letters(text);
    let cut = match letters.get(..NAME_MAX) {
        Some(cut) if cut.len() < letters.len() => cut.trim_end_matches(ENDS),
        _ => &letters,
    };
    if cut.is_empty() {
        return "limit".to_owned();
    }
    cut.to_owned()
}

/// Characters that a name does not begin with and, unless it is given so, does not end with.
const ENDS: [char; 3] = ['-', '.', '_'];

/// Converts a text to the characters of a name: others become a dash, and dashes do not repeat.
fn letters(text: &str) -> String {
    let mut letters = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || ENDS.contains(&letter) {
            letters.push(letter);
        } else if !letters.ends_with(['-', '.']) {
            letters.push('-');
        }
    }
    let starts = letters.trim_start_matches(ENDS);
    if text.ends_with(ENDS) {
        starts.to_owned()
    } else {
        starts.trim_end_matches(ENDS).to_owned()
    }
}

#[cfg(test)]
mod tests;
