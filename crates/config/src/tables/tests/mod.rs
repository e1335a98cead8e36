//! The reference pages: tables of fields, written from the tables that the reader uses.

mod defaults;
mod field_table;
mod pages;

use self::pages::Pages;
use crate::config::CONFIG;
use crate::language::table::{FieldTable, Shape};
use std::collections::BTreeMap;

/// All tables of the language, by name. Tables with one name have the same fields.
fn every_table() -> BTreeMap<&'static str, &'static FieldTable> {
    let mut found = BTreeMap::from([(name(&CONFIG), &CONFIG)]);
    let mut left: Vec<&'static Shape> = CONFIG.fields.iter().map(|it| &it.shape).collect();
    while let Some(shape) = left.pop() {
        match shape {
            Shape::Named(inner) | Shape::List(inner) => left.push(inner),
            Shape::Either(shapes) => left.extend(shapes.iter()),
            Shape::Map(table) if found.insert(name(table), *table).is_none() => {
                left.extend(table.fields.iter().map(|it| &it.shape));
            }
            _ => {}
        }
    }
    found
}

/// Returns the name of a table on the pages, such as `store.redis`.
fn name(table: &FieldTable) -> &'static str {
    table.what.trim_matches('`').trim_start_matches("the ")
}

#[test]
fn the_reference_has_the_fields_of_every_section() {
    let tables = every_table();
    let pages = Pages::read();
    let written = pages.tables();
    let expected: Vec<&str> = tables.keys().copied().collect();
    assert_eq!(
        written, expected,
        "tables on the pages, and of the language"
    );
    pages.check_explained(&tables);
    for page in pages.names() {
        let write = |name: &str| field_table::write(tables[name], page, &pages);
        tidegate_testkit::golden::compare_parts(&pages::path(page), write);
    }
}

#[test]
fn a_default_is_the_last_sentence_of_a_description() {
    for (name, table) in every_table() {
        for field in table.fields {
            let (meaning, default) = field_table::split(field.about);
            let place = format!("{name}.{}: {}", field.name, field.about);
            assert!(!meaning.contains("Default: "), "{place}");
            assert!(!default.unwrap_or_default().contains(". "), "{place}");
        }
    }
}
