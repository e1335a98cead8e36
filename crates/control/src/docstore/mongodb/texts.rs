//! The one document that holds a document store, so that each change of it is atomic:
//!
//! ```json
//! { "_id": "tidegate", "version": 1700000000000000, "change": "an ObjectId",
//!   "texts": [ { "name": "policy/api", "document": { "name": "api", "limits": [] } },
//!              { "name": "plan/free", "text": "100/min" } ] }
//! ```
//!
//! `version` counts the changes, and `change` identifies the last one. Other fields that people add stay
//! unchanged.

use super::json;
use crate::docstore::{DocumentChange, DocumentSnapshot, Revision, StoreEmptied};
use mongodb::bson::{Bson, Document as Fields, doc, oid::ObjectId};
use std::collections::BTreeSet;

/// The maximum size of a document of `MongoDB`.
const BYTES_MAX: usize = 16 << 20;

/// The id of the document.
pub(super) const ID: &str = "tidegate";

pub(super) const VERSION: &str = "version";
pub(super) const CHANGE: &str = "change";
pub(super) const TEXTS: &str = "texts";

/// The store as it is stored in `MongoDB`; empty if there is no document.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredDocument {
    /// All fields.
    fields: Fields,
    /// Its count of changes; 0 if it has none.
    version: i64,
    /// Its texts by their names.
    texts: Vec<(String, String)>,
}

/// An update for `MongoDB`.
#[derive(Clone, Debug)]
pub(super) struct MongoUpdate {
    /// The condition that the document must match.
    pub(super) filter: Fields,
    /// The fields to set.
    pub(super) set: Fields,
    /// The version after the update.
    pub(super) version: i64,
    /// The id by which the update can be recognized.
    pub(super) change: ObjectId,
}

/// Returns the version of a document.
pub(super) fn version(fields: &Fields) -> Result<i64, String> {
    let version = match fields.get(VERSION) {
        None | Some(Bson::Null | Bson::Undefined) => Some(0),
        Some(Bson::Int32(number)) => Some(i64::from(*number)),
        Some(Bson::Int64(number)) => Some(*number),
        // Some shells write whole numbers like this.
        Some(Bson::Double(number)) if number.fract() == 0.0 => number.to_string().parse().ok(),
        Some(_) => None,
    };
    let version = version.filter(|version| *version >= 0);
    version.ok_or_else(|| format!("its `{VERSION}` is not a whole number"))
}

impl StoredDocument {
    /// Parses a document, or returns why it is invalid.
    pub(super) fn new(fields: Fields) -> Result<Self, String> {
        let version = version(&fields)?;
        let mut names = BTreeSet::new();
        let mut texts = Vec::new();
        let none = Vec::new();
        let entries = match fields.get(TEXTS) {
            None | Some(Bson::Null) => &none,
            Some(Bson::Array(entries)) => entries,
            Some(_) => return Err(format!("its `{TEXTS}` is not a list")),
        };
        for (nth, entry) in entries.iter().enumerate() {
            let (name, text) =
                name_and_text(entry).map_err(|why| format!("`{TEXTS}.{nth}` {why}"))?;
            if !names.insert(name) {
                return Err(format!("duplicate `{name}` in its `{TEXTS}`"));
            }
            texts.push((name.to_owned(), text));
        }
        Ok(Self {
            fields,
            version,
            texts,
        })
    }

    /// Returns the content, unless the version is still `seen`. Fails if the content was lost.
    pub(super) fn shelved(
        self,
        seen: Option<&Revision>,
    ) -> Result<Option<DocumentSnapshot>, StoreEmptied> {
        DocumentSnapshot::new(&self.version.to_string(), self.texts, seen)
    }

    /// Returns true if this is the content of that version.
    fn is_at(&self, expected: &Revision) -> bool {
        let shelved = DocumentSnapshot::new(&self.version.to_string(), self.texts.clone(), None);
        shelved.is_ok_and(|it| it.is_some_and(|it| it.version == *expected))
    }

    /// Returns the update that makes the changes from `expected` at `now`, in microseconds; `None` if the
    /// version is no longer the same. Fails if the document would be too large.
    pub(super) fn with(
        mut self,
        expected: &Revision,
        changes: &[DocumentChange],
        now: i64,
    ) -> Result<Option<MongoUpdate>, String> {
        if !self.is_at(expected) {
            return Ok(None);
        }
        let seen = self.fields.get(VERSION).cloned().unwrap_or(Bson::Null);
        let mut filter = doc! { "_id": ID, VERSION: seen };
        if self.version == 0 {
            // Without a count, the content must be the same.
            let texts = self.fields.get(TEXTS).cloned().unwrap_or(Bson::Null);
            filter.insert(TEXTS, texts);
        }
        let version = now.max(self.version.saturating_add(1));
        let mut texts = match self.fields.remove(TEXTS) {
            Some(Bson::Array(texts)) => texts,
            _ => Vec::new(),
        };
        for change in changes {
            apply(&mut texts, change);
        }
        let change = ObjectId::new();
        let set = doc! { VERSION: version, CHANGE: change, TEXTS: texts };
        self.fields.extend(set.clone());
        self.fields.insert("_id", ID);
        let bytes = self.fields.to_vec().map_err(|error| error.to_string())?;
        if bytes.len() > BYTES_MAX {
            let length = bytes.len();
            return Err(format!(
                "it would have {length} bytes, and a document of MongoDB has at most {BYTES_MAX}; nothing was changed"
            ));
        }
        Ok(Some(MongoUpdate {
            filter,
            set,
            version,
            change,
        }))
    }
}

/// Returns the name and the text of an entry.
fn name_and_text(entry: &Bson) -> Result<(&str, String), &'static str> {
    let Bson::Document(fields) = entry else {
        return Err("is not a document");
    };
    let name = fields.get(NAME).and_then(Bson::as_str);
    let name = name.ok_or("has no valid `name`")?;
    match (fields.get(DOCUMENT), fields.get(TEXT)) {
        (Some(Bson::Document(document)), None) => Ok((name, json::to_text(document))),
        (None, Some(Bson::String(text))) => Ok((name, text.clone())),
        (Some(_), Some(_)) => Err("has both `document` and `text`; expected one of them"),
        (Some(_), None) => Err("has an invalid `document`"),
        (None, Some(_)) => Err("has an invalid `text`"),
        (None, None) => Err("has neither `document` nor `text`"),
    }
}

const NAME: &str = "name";
const DOCUMENT: &str = "document";
const TEXT: &str = "text";

fn apply(texts: &mut Vec<Bson>, change: &DocumentChange) {
    let is_it = |entry: &Bson| {
        let name = entry.as_document().and_then(|it| it.get(NAME)?.as_str());
        name == Some(change.key.as_str())
    };
    let Some(text) = &change.text else {
        texts.retain(|entry| !is_it(entry));
        return;
    };
    let entry = match json::to_document(text) {
        Some(document) => doc! { NAME: &change.key, DOCUMENT: document },
        None => doc! { NAME: &change.key, TEXT: text },
    };
    match texts.iter_mut().find(|entry| is_it(entry)) {
        Some(there) => *there = entry.into(),
        None => texts.push(entry.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(fields: Fields) -> StoredDocument {
        StoredDocument::new(fields).unwrap()
    }

    fn at(version: &str) -> Revision {
        Revision(version.to_owned())
    }

    fn change(key: &str, text: Option<&str>) -> DocumentChange {
        DocumentChange {
            key: key.to_owned(),
            text: text.map(str::to_owned),
        }
    }

    #[test]
    fn documents_and_texts_are_read_with_any_width_of_version() {
        let texts = vec![
            doc! { "name": "plan/free", "text": "100/min" },
            doc! { "name": "policy/api", "document": { "name": "api", "b": 1, "a": 2.0 } },
        ];
        for version in [Bson::Int32(7), Bson::Int64(7), Bson::Double(7.0)] {
            let fields = doc! { "_id": ID, "version": version, "texts": texts.clone() };
            let shelved = stored(fields).shelved(None).unwrap().unwrap();
            let expected = [
                ("plan/free", "100/min"),
                ("policy/api", r#"{"name": "api", "b": 1, "a": 2}"#),
            ];
            let expected = expected.map(|(key, text)| (key.to_owned(), text.to_owned()));
            assert_eq!(
                (shelved.version, shelved.texts),
                (at("7"), expected.to_vec())
            );
        }
    }

    #[test]
    fn malformed_entries_are_reported_by_position() {
        let text = |entry: Fields| doc! { "version": 1, "texts": [entry] };
        for (fields, expected) in [
            (doc! { "version": "7" }, "its `version` is not a whole"),
            (doc! { "version": 1.5 }, "its `version` is not a whole"),
            (doc! { "version": -1 }, "its `version` is not a whole"),
            (doc! { "texts": {} }, "its `texts` is not a list"),
            (doc! { "texts": ["a"] }, "`texts.0` is not a document"),
            (text(doc! { "text": "a" }), "`texts.0` has no valid `name`"),
            (
                text(doc! { "name": 1, "text": "a" }),
                "`texts.0` has no valid `name`",
            ),
            (text(doc! { "name": "a" }), "`texts.0` has neither"),
            (
                text(doc! { "name": "a", "text": "", "document": {} }),
                "`texts.0` has both",
            ),
            (
                text(doc! { "name": "a", "document": "b" }),
                "`texts.0` has an invalid `document`",
            ),
            (
                text(doc! { "name": "a", "text": {} }),
                "`texts.0` has an invalid `text`",
            ),
            (
                doc! { "texts": [{ "name": "a", "text": "" }, { "name": "a", "text": "" }] },
                "duplicate `a`",
            ),
        ] {
            let why = StoredDocument::new(fields.clone()).unwrap_err();
            assert!(why.contains(expected), "{fields}: {why}");
        }
    }

    #[test]
    fn a_change_keeps_other_entries_and_increments_the_version() {
        let texts = vec![
            doc! { "name": "policy/a", "document": { "name": "a" } },
            doc! { "name": "policy/b", "document": { "name": "b", "odd": f64::NAN } },
            doc! { "name": "policy/c", "document": { "name": "c" } },
        ];
        let there = stored(doc! { "_id": ID, "note": "ours", "version": 7, "texts": texts });
        let changes = [
            change("policy/a", Some(r#"{"name": "a", "z": 1, "b": 2}"#)),
            change("policy/c", None),
            change("plan/free", Some("1/s")),
        ];
        let planned = there.clone().with(&at("7"), &changes, 3).unwrap().unwrap();
        assert_eq!(planned.filter, doc! { "_id": ID, "version": 7 });
        assert_eq!(
            (planned.version, planned.set.get("version")),
            (8, Some(&Bson::Int64(8)))
        );
        assert!(!planned.set.contains_key("note"), "it stays as it is");
        let texts = planned.set.get_array("texts").unwrap();
        let first = doc! { "name": "policy/a", "document": { "name": "a", "z": 1, "b": 2 } };
        let last = doc! { "name": "plan/free", "text": "1/s" };
        assert_eq!((&texts[0], &texts[2]), (&first.into(), &last.into()));
        assert_eq!(texts.len(), 3);
        let later = there.clone().with(&at("7"), &changes, 99).unwrap().unwrap();
        assert_eq!(later.version, 99);
        assert!(there.with(&at("6"), &changes, 99).unwrap().is_none());
    }

    #[test]
    fn without_a_version_a_change_requires_the_texts_seen_before() {
        let texts = vec![doc! { "name": "policy/a", "document": { "name": "a" } }];
        let there = stored(doc! { "_id": ID, "texts": texts.clone() });
        let seen = there.clone().shelved(None).unwrap().unwrap().version;
        assert!(!seen.is_counted());
        let changes = [change("policy/a", None)];
        let planned = there.clone().with(&seen, &changes, 5).unwrap().unwrap();
        let expected = doc! { "_id": ID, "version": Bson::Null, "texts": texts };
        assert_eq!((planned.filter, planned.version), (expected, 5));
        assert!(there.with(&at("0"), &changes, 5).unwrap().is_none());
    }

    #[test]
    fn an_oversized_document_is_rejected_before_the_request() {
        let there = stored(doc! { "_id": ID, "version": 1 });
        let long = "a".repeat(BYTES_MAX);
        let changes = [change("plan/long", Some(&long))];
        let why = there.with(&at("1"), &changes, 5).unwrap_err();
        assert!(
            why.contains("at most 16777216; nothing was changed"),
            "{why}"
        );
    }
}
