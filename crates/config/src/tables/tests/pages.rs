//! The pages of the reference, and the places that their tables link to.

use super::name;
use crate::language::table::FieldTable;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tidegate_testkit::golden;

const FOLDER: &str = "reference/config";
/// Precedes the fields that the text below a heading explains, as `TABLE.FIELD` with commas between.
const EXPLAINS: &str = "<!-- explains: ";

/// The pages, by file name.
#[derive(Debug, Default)]
pub(super) struct Pages {
    files: Vec<String>,
    /// The heading above each table, as a page and an anchor.
    tables: BTreeMap<String, Anchor>,
    /// The heading above the explanation of a field.
    explained: BTreeMap<String, Anchor>,
}

#[derive(Debug)]
struct Anchor {
    page: String,
    heading: String,
}

/// Returns the path of a page.
pub(super) fn path(page: &str) -> PathBuf {
    golden::docs(FOLDER).join(page)
}

impl Pages {
    /// Reads all pages of the reference.
    pub(super) fn read() -> Self {
        let entries = fs::read_dir(golden::docs(FOLDER)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut pages = Self {
            files: names
                .filter(|name| path(name).extension().is_some_and(|it| it == "md"))
                .collect(),
            ..Self::default()
        };
        pages.files.sort();
        for page in pages.files.clone() {
            let text = fs::read_to_string(path(&page)).unwrap();
            pages.add(&page, &text);
        }
        pages
    }

    fn add(&mut self, page: &str, text: &str) {
        let mut heading = String::new();
        for line in text.lines() {
            if line.starts_with('#') {
                heading = golden::anchor(line);
            }
            let place = || Anchor {
                page: page.to_owned(),
                heading: heading.clone(),
            };
            for name in golden::parts(line) {
                let other = self.tables.insert(name.to_owned(), place());
                assert!(other.is_none(), "{page}: {name} has two tables");
            }
            let explains = line.strip_prefix(EXPLAINS);
            let fields = explains.and_then(|rest| rest.strip_suffix(" -->"));
            for field in fields.into_iter().flat_map(|fields| fields.split(", ")) {
                let other = self.explained.insert(field.to_owned(), place());
                assert!(other.is_none(), "{page}: {field} is explained twice");
            }
        }
    }

    /// Returns the file names of the pages.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Returns the names of the tables on all pages, in alphabetical order.
    pub(super) fn tables(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    /// Fails if a page explains a field that does not exist.
    pub(super) fn check_explained(&self, tables: &BTreeMap<&str, &FieldTable>) {
        for field in self.explained.keys() {
            let (table, name) = field.rsplit_once('.').unwrap();
            let mut fields = tables[table].fields.iter();
            assert!(fields.any(|it| it.name == name), "no field {field}");
        }
    }

    /// Returns a link from `page` to a table.
    pub(super) fn link_to_table(&self, page: &str, table: &FieldTable) -> String {
        self.tables[name(table)].link_from(page)
    }

    /// Returns a link from `page` to the explanation of a field, if it has one.
    pub(super) fn link_to_field(
        &self,
        page: &str,
        table: &FieldTable,
        field: &str,
    ) -> Option<String> {
        let explained = self.explained.get(&format!("{}.{field}", name(table)))?;
        Some(explained.link_from(page))
    }
}

impl Anchor {
    fn link_from(&self, page: &str) -> String {
        let file = if self.page == page { "" } else { &self.page };
        format!("{file}#{}", self.heading)
    }
}
