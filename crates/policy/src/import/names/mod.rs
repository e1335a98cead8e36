//! What policies and limits are called: names of ours are plainer than those of others.

use crate::mask::is_secret_subject;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Names are at most this long, as the language has it.
const NAME_MAX: usize = 64;

/// How many digits of a hash tell apart what would be called the same.
const DIGITS: usize = 8;

/// Something that is to be called something.
#[derive(Debug)]
pub(super) struct NameRequest {
    text: String,
    /// What it is, to the letter: whatever is lost in the text is not lost here.
    of: String,
    is_given: bool,
}

impl NameRequest {
    /// What somebody has called `text`, and nothing else beside it.
    pub(super) fn given(text: &str) -> Self {
        Self::given_to(text, text.to_owned())
    }

    /// What somebody has called `text`, which may be said of others too, and is `of`.
    pub(super) fn given_to(text: &str, of: String) -> Self {
        Self {
            text: text.to_owned(),
            of,
            is_given: true,
        }
    }

    /// What nobody has called anything, and is `of`: `text` says it in short.
    pub(super) fn made_up(text: String, of: String) -> Self {
        Self {
            text,
            of,
            is_given: false,
        }
    }

    /// What others must not say as well for it to be called so: to the letter, if it is given.
    fn said(&self) -> String {
        if self.is_given {
            self.text.clone()
        } else {
            slug(&self.text)
        }
    }

    /// Whether the text says all of it, so that it is rarely said of anything else.
    fn is_whole(&self) -> bool {
        let length = letters(&self.text).len();
        self.of.is_ascii() && (1..=NAME_MAX).contains(&length)
    }
}

/// What all of these are called, in order; nothing is called as is `reserved`.
///
/// A name is what a bucket is known by, and so it goes by what is called so, and neither by its place
/// nor by what stands beside it: whoever adds something never takes the name of something else. A name
/// that is given, and is one here too, stays as it is. Any other that is given has a hash of itself
/// at its end, and one that is given to several a hash of what each of them is. One that is made up has a hash of what it is where it does not say all of it, or where
/// another would be called so.
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
    // Names that stay come first, then others that are given, so that none made up takes one.
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

/// Names that are taken.
#[derive(Debug)]
struct TakenNames {
    taken: BTreeSet<String>,
    /// How many would be called so, of those that are given and of those that are not.
    said: BTreeMap<(bool, String), usize>,
    /// How often something was called by its hash.
    hashed: BTreeMap<String, usize>,
}

impl TakenNames {
    /// A name that is given, as it is, if it can be.
    fn kept(&mut self, it: &NameRequest) -> Option<String> {
        let name = it.text.as_str();
        if !it.is_given || slug(name) != name || !self.is_only(it) {
            return None;
        }
        self.taken.insert(name.to_owned()).then(|| name.to_owned())
    }

    /// Another name in place of one that is given.
    fn changed(&mut self, it: &NameRequest) -> Option<String> {
        let of = if self.is_only(it) { &it.text } else { &it.of };
        it.is_given.then(|| self.by_hash(&it.text, of))
    }

    /// A name for what has none.
    fn made_up(&mut self, it: &NameRequest) -> String {
        let name = slug(&it.text);
        let is_enough = it.is_whole() && self.is_only(it);
        if is_enough && self.taken.insert(name.clone()) {
            return name;
        }
        self.by_hash(&it.text, &it.of)
    }

    fn is_only(&self, it: &NameRequest) -> bool {
        let said = self.said.get(&(it.is_given, it.said()));
        said.is_none_or(|count| *count == 1)
    }

    /// As near as may be, and a hash of what it is.
    fn by_hash(&mut self, text: &str, of: &str) -> String {
        let plain = slug(text);
        let room = NAME_MAX.saturating_sub(DIGITS.saturating_add(1));
        let stem = plain.get(..room).unwrap_or(&plain).trim_end_matches(ENDS);
        let count = self.hashed.entry(of.to_owned()).or_default();
        loop {
            let hash = match *count {
                0 => short_hash(of),
                // The very same once more, or a hash that something else has.
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

/// A few digits that tell one text from others, and do not tell the text.
pub(super) fn short_hash(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes());
    hash.to_hex().chars().take(DIGITS).collect()
}

/// A name for these keys and values, such as `message_type-marketing.to_number`, before it is made to
/// fit. A value that is all pattern is any.
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

/// The value of a key as it may stand in a name, which metrics, answers and keys tell anybody: of what
/// may be a secret, a hash.
pub(super) fn shown<'t>(key: &str, value: &'t str) -> Cow<'t, str> {
    if is_secret_subject(key) {
        Cow::from(short_hash(&format!("{key}\n{value}")))
    } else {
        Cow::from(value)
    }
}

/// What these keys and values are, to the letter.
pub(super) fn of<'a>(entries: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let parts = entries.map(|(key, value)| match value {
        None => key.to_owned(),
        Some(value) => format!("{key}\t{value}"),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// `text` as a name.
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

/// What a name neither begins with nor, unless it is given so, ends with.
const ENDS: [char; 3] = ['-', '.', '_'];

/// `text` in the letters of a name: what does not belong becomes a dash, and dashes do not pile up.
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
