//! The entries of plans in a document store: `plan/ID`, `group/ID` and `subject/ID`, each with a map in
//! JSON or a rate.

use crate::docstore::{DocumentChange, DocumentSnapshot, Revision};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate::plan::{PlanDocument, PlanLevel, refers};
use tidegate_frontends::wire::fault::quote;

/// Plans, groups and subjects, each as written.
#[derive(Clone, Debug)]
pub(crate) struct PlanEntries {
    version: Revision,
    texts: BTreeMap<(PlanLevel, String), String>,
    /// The first words of unknown keys, if they have several.
    strange: Vec<Option<String>>,
}

/// The users of entries.
#[derive(Debug, Default)]
pub(crate) struct Users(HashMap<String, Vec<(PlanLevel, String)>, RandomState>);

impl Users {
    /// Returns the users of the entry `id`.
    pub(crate) fn of(&self, id: &str) -> &[(PlanLevel, String)] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

impl PlanEntries {
    /// Reads the content of a document store.
    pub(crate) fn new(shelved: DocumentSnapshot) -> Self {
        let mut entries = Self {
            version: shelved.version,
            texts: BTreeMap::new(),
            strange: Vec::new(),
        };
        for (key, text) in shelved.texts {
            match named(&key) {
                Some((level, id)) => {
                    entries.texts.insert((level, id.to_owned()), text);
                }
                None => {
                    // The rest of the key may be a secret in an unexpected place.
                    let word = key.split_once('/').map(|(word, _)| word.to_owned());
                    entries.strange.push(word);
                }
            }
        }
        entries
    }

    /// Returns the version of the store.
    pub(crate) fn version(&self) -> &Revision {
        &self.version
    }

    /// Returns an entry as written.
    pub(crate) fn get(&self, level: PlanLevel, id: &str) -> Option<&str> {
        self.texts.get(&(level, id.to_owned())).map(String::as_str)
    }

    /// Returns the entries of a level, in the order of their ids.
    pub(crate) fn of(&self, level: PlanLevel) -> impl Iterator<Item = (&str, &str)> {
        let of_level = self.texts.iter().filter(move |((it, _), _)| *it == level);
        of_level.map(|((_, id), text)| (id.as_str(), text.as_str()))
    }

    /// Returns the entries with another text for that entry, or without it.
    pub(crate) fn with(&self, level: PlanLevel, id: &str, text: Option<&str>) -> Self {
        let mut entries = self.clone();
        let key = (level, id.to_owned());
        match text {
            Some(text) => entries.texts.insert(key, text.to_owned()),
            None => entries.texts.remove(&key),
        };
        entries
    }

    /// Returns true if the store has nothing at all, not even a count: if it had something before, it was
    /// lost.
    pub(crate) fn is_nothing(&self) -> bool {
        self.version.0 == "0" && self.texts.is_empty()
    }

    /// Returns the users of each plan, or the members of each group. Parses all entries, which takes
    /// time.
    pub(crate) fn users(&self, level: PlanLevel) -> Users {
        let mut users = Users::default();
        if level == PlanLevel::Subject {
            return users;
        }
        for ((of, id), text) in self.texts.iter().filter(|((of, _), _)| *of > level) {
            let refers = refers(*of, text);
            let named = match level {
                PlanLevel::Plan => refers.plan,
                _ => refers.group,
            };
            if let Some(named) = named {
                users.0.entry(named).or_default().push((*of, id.clone()));
            }
        }
        users
    }

    /// Returns all entries as one document. The errors of single entries are reported by its table.
    pub(crate) fn document(&self, hides_subjects: bool) -> PlanDocument {
        let mut document = PlanDocument::default();
        if hides_subjects {
            document = document.hiding_subjects();
        }
        for ((level, id), text) in &self.texts {
            document.put(*level, id, text);
        }
        for word in &self.strange {
            let what = match word {
                Some(word) if !hides_subjects => format!("something under {}", quote(word)),
                _ => "another name (hidden because it may be a secret)".to_owned(),
            };
            document.refuse(format!(
                "found {what}; expected `plan/ID`, `group/ID` or `subject/ID`"
            ));
        }
        document
    }
}

/// Parses an entry as a map; `None` if it is invalid.
pub fn settings(text: &str) -> Option<Map<String, Value>> {
    let text = text.trim();
    let rate = |text: &str| Map::from_iter([("rate".to_owned(), Value::from(text))]);
    if !text.starts_with(['{', '[', '"']) {
        return Some(rate(text));
    }
    match serde_json::from_str(text).ok()? {
        Value::Object(settings) => Some(settings),
        Value::String(text) => Some(rate(&text)),
        _ => None,
    }
}

/// Returns the change in the document store for an entry.
pub(crate) fn change(level: PlanLevel, id: &str, text: Option<&str>) -> DocumentChange {
    DocumentChange {
        key: format!("{}/{id}", level.noun()),
        text: text.map(str::to_owned),
    }
}

/// Returns the level and the id in a key such as `subject/ann`.
fn named(key: &str) -> Option<(PlanLevel, &str)> {
    let (word, id) = key.split_once('/')?;
    let level = PlanLevel::ALL.into_iter().find(|it| it.noun() == word)?;
    Some((level, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::plan::UnsetShare;

    fn entries(texts: &[(&str, &str)]) -> PlanEntries {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        PlanEntries::new(DocumentSnapshot {
            version: Revision("7".to_owned()),
            texts: texts.iter().map(own).collect(),
        })
    }

    #[test]
    fn plans_groups_and_subjects_are_joined_by_their_keys() {
        let there = entries(&[
            ("plan/pro", "100/min"),
            ("group/acme", r#"{"plan": "pro"}"#),
            ("subject/a/b", r#"{"group": "acme", "amount": 50}"#),
        ]);
        let table = there.document(false).table(UnsetShare::Refuse).unwrap();
        assert_eq!((table.subjects(), table.groups()), (1, 1));
        assert_eq!(table.get("a/b").unwrap().group, Some("acme"));
        let has = there.with(PlanLevel::Subject, "a/b", None).document(false);
        assert_eq!(has.table(UnsetShare::Refuse).unwrap().subjects(), 0);
    }

    #[test]
    fn all_errors_are_reported_at_once_without_secrets() {
        let there = entries(&[
            ("plan/pro", "many"),
            ("subject/s3cr3t", "{"),
            ("tokens/s3cr3t", "1/s"),
        ]);
        let wrong = there.document(true).table(UnsetShare::Refuse).unwrap_err();
        let wrong = wrong.to_string();
        for expected in ["plan `pro`", "subject number 1", "another name"] {
            assert!(wrong.contains(expected), "{expected}: {wrong}");
        }
        assert!(!wrong.contains("s3cr3t"), "{wrong}");
    }

    #[test]
    fn subjects_of_a_plan_or_group_are_found() {
        let there = entries(&[
            ("plan/pro", "100/min"),
            ("plan/promo", r#"{"rate": "1/s", "note": "pro"}"#),
            ("group/acme", r#"{"plan": "pro"}"#),
            ("subject/ann", r#"{"group": "acme", "plan": "promo"}"#),
            ("subject/bob", r#"{"plan": "pro"}"#),
            ("subject/pro", "1/s"),
        ]);
        let own = |users: &[(PlanLevel, &str)]| -> Vec<(PlanLevel, String)> {
            users
                .iter()
                .map(|(it, id)| (*it, (*id).to_owned()))
                .collect()
        };
        let of_pro = own(&[(PlanLevel::Group, "acme"), (PlanLevel::Subject, "bob")]);
        assert_eq!(there.users(PlanLevel::Plan).of("pro"), of_pro);
        let of_acme = own(&[(PlanLevel::Subject, "ann")]);
        assert_eq!(there.users(PlanLevel::Group).of("acme"), of_acme);
        assert!(there.users(PlanLevel::Subject).of("ann").is_empty());
    }

    #[test]
    fn references_in_unusual_notation_were_not_found() {
        let there = entries(&[
            ("plan/7", "1/s"),
            ("plan/a\"b", "1/s"),
            ("subject/a", r#"{"plan": 7}"#),
            ("subject/b", r#"{"plan": "a\"b"}"#),
            ("subject/c", r#"{"plan": " 7 "}"#),
        ]);
        let users = there.users(PlanLevel::Plan);
        assert_eq!(users.of("7").len(), 2, "{users:?}");
        assert_eq!(users.of("a\"b").len(), 1, "{users:?}");
    }

    #[test]
    fn a_secret_key_without_a_level_was_shown() {
        let there = entries(&[("s3cr3t", "1/s")]);
        for hides in [false, true] {
            let wrong = there.document(hides).table(UnsetShare::Refuse).unwrap_err();
            assert!(!wrong.to_string().contains("s3cr3t"), "{wrong}");
        }
    }

    #[test]
    fn an_entry_is_a_map_or_a_rate() {
        let rate = |text: &str| settings(text).unwrap()["rate"].clone();
        for text in ["100/min", " \"100/min\"", r#"{"rate": "100/min"}"#] {
            assert_eq!(rate(text), "100/min", "{text}");
        }
        assert!(settings("{").is_none() && settings("[1]").is_none());
    }
}
