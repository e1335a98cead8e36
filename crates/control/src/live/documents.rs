//! A set of named documents: the content of a writable source.

use super::edit::Edit;
use super::source::{LoadResult, LoadedPart, SourceDefect, SourceNote};
use crate::docstore::{DocumentChange, DocumentSnapshot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use tidegate_config::compose::DocumentKind;

/// The mask that is shown in place of a secret.
const HIDDEN: &str = "***";

/// Documents in JSON, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Documents(BTreeMap<(DocumentKind, String), String>);

impl Documents {
    /// Reads documents under keys such as `policy/api` from a document store. Other keys are ignored. A
    /// key of Tidegate's with an invalid document makes the whole set invalid: leaving it out would lift
    /// its limits.
    pub(super) fn load(shelved: DocumentSnapshot) -> LoadResult {
        let mut documents = Self::default();
        let mut notes = Vec::new();
        for (key, document) in shelved.texts {
            let Some((kind, name)) = named(&key) else {
                notes.push(format!(
                    "`{key}` is skipped: it is not a policy, a guard or a route"
                ));
                continue;
            };
            documents.0.insert((kind, name.to_owned()), document);
        }
        let version = shelved.version;
        if let Some(why) = documents.wrong() {
            return LoadResult::Wrong(SourceDefect {
                version,
                why: why.join("\n"),
                documents: Some(documents),
            });
        }
        let text = documents.to_text();
        LoadResult::Part(LoadedPart {
            flaw: None,
            text,
            version,
            is_translated: false,
            is_separable: false,
            notes: notes.into_iter().map(SourceNote::warning).collect(),
            documents: Some(documents),
        })
    }

    /// Returns the errors of invalid documents, if there are any.
    pub(super) fn wrong(&self) -> Option<Vec<String>> {
        let wrong = self.0.iter().filter_map(|((kind, name), document)| {
            let why = check(name, document).err()?;
            Some(format!("`{}/{name}`: {why}", kind.word()))
        });
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then_some(wrong)
    }

    /// Returns true if this name has a valid document of that name.
    pub(super) fn is_sound(&self, kind: DocumentKind, name: &str) -> bool {
        let document = self.get(kind, name);
        document.is_some_and(|document| check(name, document).is_ok())
    }

    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the change in the document store for an edit.
    pub(super) fn change(edit: &Edit) -> DocumentChange {
        DocumentChange {
            key: format!("{}/{}", edit.kind.word(), edit.name),
            text: edit.document.clone(),
        }
    }

    /// Returns the document of that kind and name.
    pub(crate) fn get(&self, kind: DocumentKind, name: &str) -> Option<&str> {
        self.0.get(&(kind, name.to_owned())).map(String::as_str)
    }

    /// Returns the documents after `edits`, or the error of an invalid edit.
    pub(super) fn with(&self, edits: &[Edit]) -> Result<Self, String> {
        let mut documents = self.clone();
        for edit in edits {
            let key = (edit.kind, edit.name.clone());
            match &edit.document {
                Some(document) => {
                    check(&edit.name, document)?;
                    documents.0.insert(key, document.clone());
                }
                None => {
                    documents.0.remove(&key);
                }
            }
        }
        Ok(documents)
    }

    /// Writes all documents as one configuration text: by kind, and ordered by name. Each begins on its
    /// own line, so that errors refer to that line.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::from("{");
        let mut kinds = 0;
        for kind in DocumentKind::ALL {
            let mut of_kind = self.0.iter().filter(|((it, _), _)| *it == kind).peekable();
            if of_kind.peek().is_none() {
                continue;
            }
            let comma = if kinds > 0 { "," } else { "" };
            kinds += 1;
            // Writing to a string cannot fail.
            write!(text, "{comma}\n\"{}\": [", kind.section()).ok();
            for (nth, (_, document)) in of_kind.enumerate() {
                text.push_str(if nth > 0 { ",\n" } else { "\n" });
                text.push_str(document.trim());
            }
            text.push(']');
        }
        text.push_str("}\n");
        text
    }
}

/// Returns the kind and the name in a key such as `policy/api`.
fn named(key: &str) -> Option<(DocumentKind, &str)> {
    let (word, name) = key.split_once('/')?;
    let kind = DocumentKind::ALL.into_iter().find(|it| it.word() == word)?;
    Some((kind, name))
}

/// Fails if a text is not exactly one document of that name: a document that is joined to a larger text
/// must not end it early.
fn check(name: &str, document: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(document).map_err(|why| format!("not JSON: {why}"))?;
    if has_hidden(&value) {
        return Err(format!(
            "`{HIDDEN}` is a placeholder for a hidden value; write the value"
        ));
    }
    if name != name.trim() {
        return Err(format!("the name {name:?} starts or ends with a space"));
    }
    let found = value.get(DocumentKind::NAME_FIELD);
    match found.and_then(Value::as_str) {
        Some(found) if found == name => Ok(()),
        Some(found) => Err(format!("its name is `{found}`")),
        None => {
            let field = DocumentKind::NAME_FIELD;
            Err(format!("it has no `{field}`; expected `{name}`"))
        }
    }
}

/// Returns true if a document contains a masked secret, which must not be written back.
fn has_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN,
        Value::Array(items) => items.iter().any(has_hidden),
        Value::Object(fields) => fields.values().any(has_hidden),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docstore::Revision;

    fn policy(name: &str, rate: &str) -> String {
        format!(r#"{{"name": "{name}", "limits": [{{"name": "all", "rate": "{rate}"}}]}}"#)
    }

    fn edit(kind: DocumentKind, name: &str, document: Option<String>) -> Edit {
        Edit {
            kind,
            name: name.to_owned(),
            document,
            over: None,
        }
    }

    fn shelved(found: &[(&str, String)]) -> DocumentSnapshot {
        let texts = found
            .iter()
            .map(|(key, text)| ((*key).to_owned(), text.clone()));
        DocumentSnapshot {
            version: Revision("7".to_owned()),
            texts: texts.collect(),
        }
    }

    fn loaded(found: &[(&str, String)]) -> LoadedPart {
        match Documents::load(shelved(found)) {
            LoadResult::Part(part) => part,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn documents_become_one_text_in_the_order_of_their_names() {
        let part = loaded(&[
            ("policy/b", policy("b", "1/s")),
            (
                "guard/g",
                r#"{"name": "g", "deny": "ip", "list": ["192.0.2.1"]}"#.to_owned(),
            ),
            ("policy/a", policy("a", "2/s")),
        ]);
        let config = tidegate_config::Config::from_yaml(&part.text).unwrap();
        let names: Vec<_> = config.policies.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, config.guards.iter().count()), (vec!["a", "b"], 1));
        assert_eq!(part.version.0, "7");
    }

    #[test]
    fn no_documents_are_an_empty_text() {
        let part = loaded(&[]);
        assert_eq!((part.text.as_str(), part.notes.len()), ("{}\n", 0));
    }

    #[test]
    fn a_document_under_a_wrong_name_rejects_the_whole_source() {
        let found = [
            ("policy/a", policy("b", "1/s")),
            ("policy/c", "{\"name\": \"c\"}], \"listen\": [{}".to_owned()),
            ("policy/d", "{}".to_owned()),
            ("policy/e", policy("e", "1/s")),
            ("policy/f", policy("f", "***")),
        ];
        let LoadResult::Wrong(SourceDefect { why, .. }) = Documents::load(shelved(&found)) else {
            panic!("an invalid document");
        };
        for expected in [
            "`policy/a`: its name is `b`",
            "`policy/c`: not JSON",
            "`policy/d`: it has no `name`; expected `d`",
            "`policy/f`: `***` is a placeholder for a hidden value",
        ] {
            assert!(why.contains(expected), "{expected}: {why}");
        }
        assert!(!why.contains("policy/e"), "{why}");
    }

    #[test]
    fn unknown_documents_are_ignored_and_reported() {
        let part = loaded(&[("other", "{}".to_owned()), ("plan/x", "?".to_owned())]);
        assert_eq!((part.text.as_str(), part.notes.len()), ("{}\n", 2));
    }

    #[test]
    fn edits_set_and_remove_documents_and_keep_the_rest() {
        let documents = loaded(&[
            ("policy/a", policy("a", "1/s")),
            ("policy/b", policy("b", "1/s")),
        ]);
        let documents = documents.documents.unwrap();
        let kind = DocumentKind::Policy;
        let edits = [
            edit(kind, "a", None),
            edit(kind, "c", Some(policy("c", "3/s"))),
        ];
        let after = documents.with(&edits).unwrap();
        let has = |name| after.get(kind, name).is_some();
        assert!(!has("a") && has("b") && has("c"));
        let misnamed = [edit(kind, "c", Some(policy("d", "3/s")))];
        assert!(
            documents
                .with(&misnamed)
                .unwrap_err()
                .contains("its name is `d`")
        );
    }

    #[test]
    fn a_name_with_outer_blanks_was_read_differently_by_the_parser() {
        let found = [("policy/ api ", policy(" api ", "1/s"))];
        let LoadResult::Wrong(SourceDefect { why, .. }) = Documents::load(shelved(&found)) else {
            panic!("an invalid document");
        };
        assert!(
            why.contains("`policy/ api `: the name \" api \" starts or ends"),
            "{why}"
        );
        let kind = DocumentKind::Policy;
        let made = [edit(kind, "api ", Some(policy("api ", "1/s")))];
        assert!(Documents::default().with(&made).is_err());
    }
}
