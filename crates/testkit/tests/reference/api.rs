//! An `OpenAPI` document, and the places on its page.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate_testkit::golden;

/// A document that a page describes.
pub(crate) struct Api {
    document: Value,
    /// The anchors of schemas in parts with their own name.
    placed: BTreeMap<String, String>,
    /// The errors of many operations that mean the same in all of them, by status.
    pub(crate) shared: BTreeMap<String, String>,
}

/// An operation of a document.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) path: &'a str,
    pub(crate) method: &'a str,
    pub(crate) value: &'a Value,
}

impl Api {
    pub(crate) fn read(document: &str, page: &str) -> Self {
        let mut api = Self {
            document: serde_json::from_str(document).unwrap(),
            placed: places(page),
            shared: BTreeMap::new(),
        };
        api.shared = api.shared_errors();
        api
    }

    /// Returns the operations, by path.
    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.document["paths"].as_object().unwrap().iter();
        let all = paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, value)| Operation {
                path,
                method,
                value,
            })
        });
        all.collect()
    }

    /// Returns the names of the schemas that have no part of their own.
    pub(crate) fn others(&self) -> Vec<&str> {
        let names = self.schemas().keys().map(String::as_str);
        names
            .filter(|name| !is_configuration(name) && !self.placed.contains_key(*name))
            .collect()
    }

    pub(crate) fn schema(&self, name: &str) -> &Value {
        let schema = self.schemas().get(name);
        schema.unwrap_or_else(|| panic!("no schema {name}"))
    }

    /// Returns a link to the fields of a schema.
    pub(crate) fn link(&self, name: &str) -> String {
        if is_configuration(name) {
            return format!("[{name}](config/README.md)");
        }
        let anchor = self.placed.get(name);
        let anchor = anchor.map_or_else(|| name.to_lowercase(), Clone::clone);
        format!("[{name}](#{anchor})")
    }

    fn schemas(&self) -> &Map<String, Value> {
        self.document["components"]["schemas"].as_object().unwrap()
    }

    /// Returns the errors that all operations describe alike, by status. An operation may describe one in its
    /// own words, as readiness does.
    fn shared_errors(&self) -> BTreeMap<String, String> {
        let mut meanings: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for operation in self.operations() {
            for (status, response) in operation.responses() {
                if status.starts_with(['4', '5']) {
                    let meaning = response["description"].as_str().unwrap().to_owned();
                    let meanings = meanings.entry(status.clone()).or_default();
                    *meanings.entry(meaning).or_default() += 1;
                }
            }
        }
        let usual = meanings.into_iter().filter_map(|(status, meanings)| {
            let (meaning, count) = meanings.into_iter().max_by_key(|(_, count)| *count)?;
            (count > 2).then_some((status, meaning))
        });
        usual.collect()
    }
}

impl<'a> Operation<'a> {
    pub(crate) fn responses(self) -> &'a Map<String, Value> {
        self.value["responses"].as_object().unwrap()
    }
}

/// Returns true for a schema of the configuration language, which has its own pages.
fn is_configuration(schema: &str) -> bool {
    schema.starts_with(char::is_lowercase)
}

/// Returns the anchor of the heading above each generated part.
fn places(page: &str) -> BTreeMap<String, String> {
    let mut heading = String::new();
    let mut places = BTreeMap::new();
    for line in page.lines() {
        if line.starts_with('#') {
            heading = golden::anchor(line);
        }
        places.extend(golden::parts(line).map(|name| (name.to_owned(), heading.clone())));
    }
    places
}
