//! The fields that maps may have, defined once for the reader, the schema and the reference pages.
//!
//! The pages in `docs/reference/config` have a table for each [`FieldTable`]. A test in `tables/tests`
//! writes them, and checks that a documented default and no value at all are the same configuration.

use super::reader::{ConfigReader, ConfigValue};
use super::words::{Vocabulary, one_of};
use crate::language::renamed;
use crate::syntax::{MapEntry, NodeKind};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

/// The fields that a map may have.
///
/// Two maps with one table are one definition in the schema and one table on the pages.
pub struct FieldTable {
    /// The thing that the map describes, such as "limit". Also the name of the definition in the schema,
    /// and of the table on the pages: unique, unless two tables have the same fields.
    pub what: &'static str,
    /// The fields.
    pub fields: &'static [FieldRow],
    /// Fields of which exactly one must be set; empty if there is no such rule.
    pub exactly_one: &'static [&'static str],
}

/// A field of a map.
#[derive(Debug)]
pub struct FieldRow {
    /// The name.
    pub name: &'static str,
    /// The shape of the value.
    pub shape: Shape,
    /// The description for people, in sentences that end with a full stop. It begins with a noun or a
    /// verb. If there is a default, it is the last sentence: `Default: 20ms.`
    ///
    /// Editors show it as written. The reference pages show the default in a separate column.
    pub about: &'static str,
    /// True if it must be set.
    pub required: bool,
}

/// The shape of a value.
#[derive(Debug)]
pub enum Shape {
    /// Text; the string is an example, from which the pages derive the kind of text: `5s` is a duration,
    /// `/etc/…` the path of a file. Empty for text of any kind.
    Text(&'static str),
    /// One of the words in this vocabulary.
    Word(&'static dyn Vocabulary),
    /// `true` or `false`.
    Flag,
    /// A whole number within these bounds, inclusive.
    Whole(u64, u64),
    /// A decimal above 0 and up to 1.
    Share,
    /// A list of values.
    List(&'static Shape),
    /// A value of any of these shapes.
    Either(&'static [Shape]),
    /// A map from names to text.
    Pairs,
    /// A map from names to text, or to such maps.
    Tree,
    /// A map from arbitrary names to values of this shape.
    Named(&'static Shape),
    /// A map with these fields.
    Map(&'static FieldTable),
}

/// The fields of a map.
#[derive(Debug)]
pub struct FieldReader<'a> {
    table: &'static FieldTable,
    map: ConfigValue<'a>,
    entries: &'a [MapEntry],
}

/// A text or a list of texts.
pub(crate) const TEXTS: Shape = Shape::Either(&[Shape::Text(""), Shape::List(&Shape::Text(""))]);

/// Returns the row of a field that must be set.
pub const fn required(name: &'static str, shape: Shape, about: &'static str) -> FieldRow {
    FieldRow {
        name,
        shape,
        about,
        required: true,
    }
}

/// Returns the row of a field that may be absent.
pub const fn optional(name: &'static str, shape: Shape, about: &'static str) -> FieldRow {
    FieldRow {
        name,
        shape,
        about,
        required: false,
    }
}

// === impl FieldTable ===

impl FieldTable {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// Returns a title such as "limit `per-client`", or without the name if the map has none.
    fn title(&self, map: &ConfigValue<'_>) -> String {
        let name = map.node.get("name");
        match name.and_then(|name| name.as_text()) {
            Some(name) => format!("{} {}", self.what, ConfigFault::quote(name)),
            None => ConfigFault::article(self.what),
        }
    }
}

impl std::fmt::Debug for FieldTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

// === impl FieldReader ===

impl<'a> FieldReader<'a> {
    /// Returns the value of a field, if it is set.
    pub fn get(&self, name: &str) -> Option<ConfigValue<'a>> {
        debug_assert!(
            self.table.names().any(|known| known == name),
            "{name} is in no table"
        );
        let entry = self.entries.iter().find(|entry| entry.key.text == name)?;
        Some(self.map.child(&entry.key, &entry.value))
    }

    /// Returns the fields of an absent map with this table, in this map.
    pub(crate) fn absent(&self, table: &'static FieldTable) -> Self {
        Self {
            table,
            map: self.map.clone(),
            entries: &[],
        }
    }

    /// Returns the map itself.
    pub fn map(&self) -> &ConfigValue<'a> {
        &self.map
    }

    /// Returns true if the map has no fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

// === impl ConfigReader ===

impl ConfigReader<'_> {
    /// Returns the fields of a map. Reports unknown and missing fields.
    pub fn fields<'v>(
        &mut self,
        value: &ConfigValue<'v>,
        table: &'static FieldTable,
    ) -> Option<FieldReader<'v>> {
        let NodeKind::Map(entries) = &value.node.kind else {
            let expected = match ConfigFault::article(table.what) {
                what if what.starts_with("a ") => format!("{what}, which is a map"),
                _ => "a map".to_owned(),
            };
            self.refuse_kind(value, &expected);
            return None;
        };
        let mut meant = Vec::new();
        for entry in entries {
            if !table.names().any(|name| name == entry.key.text) {
                let spot = value.child(&entry.key, &entry.value).key_spot();
                let former = renamed::find(&spot.1);
                let help = match former {
                    Some(former) => former.help(),
                    None => expected_fields(table, &entry.key.text),
                };
                self.error(
                    spot,
                    unknown_field(table, value, &entry.key.text).help(help),
                );
                match former {
                    Some(former) => meant.extend(former.meant()),
                    None => meant.extend(closest(&entry.key.text, table.names())),
                }
            }
        }
        // A misspelled field is already reported.
        let has = |name: &str| {
            meant.contains(&name) || entries.iter().any(|entry| entry.key.text == name)
        };
        for field in table.fields.iter().filter(|field| field.required) {
            if !has(field.name) {
                self.error(value.spot(), missing_field(table, value, field));
            }
        }
        if !table.exactly_one.iter().any(|name| meant.contains(name)) {
            self.check_exactly_one(value, table, entries);
        }
        Some(FieldReader {
            table,
            map: value.clone(),
            entries,
        })
    }

    /// Parses the value of a field with `parse`, if it is set.
    pub fn setting<T>(
        &mut self,
        fields: &FieldReader<'_>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, ConfigFault>,
    ) -> Option<T> {
        self.parse(&fields.get(name)?, parse)
    }

    fn check_exactly_one(
        &mut self,
        value: &ConfigValue<'_>,
        table: &FieldTable,
        entries: &[MapEntry],
    ) {
        let choice = table.exactly_one;
        let mut written = entries
            .iter()
            .filter(|entry| choice.contains(&entry.key.text.as_str()));
        match (written.next(), written.next()) {
            (None, _) if !choice.is_empty() => {
                let message = format!("{} needs {}", table.title(value), one_of(choice));
                let example = choice.iter().find_map(|name| {
                    let field = table.fields.iter().find(|field| field.name == *name)?;
                    Some(field.example())
                });
                self.error(value.spot(), ConfigFault::new(message).maybe_help(example));
            }
            (Some(first), Some(second)) => {
                let spot = value.child(&second.key, &second.value).key_spot();
                let fault = ConfigFault::new(format!(
                    "{} has both `{}` and `{}`",
                    table.title(value),
                    first.key.text,
                    second.key.text
                ));
                self.error(spot, fault.help("write one of the two"));
            }
            _ => {}
        }
    }
}

fn unknown_field(table: &FieldTable, value: &ConfigValue<'_>, name: &str) -> ConfigFault {
    ConfigFault::new(format!(
        "unknown field {} in {}",
        ConfigFault::quote(name),
        table.title(value)
    ))
}

/// Returns the help for an unknown field: the closest name, and all names.
fn expected_fields(table: &FieldTable, name: &str) -> String {
    let names: Vec<&str> = table.names().collect();
    let meant = closest(name, names.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    format!("{meant}expected {}", one_of(&names))
}

fn missing_field(table: &FieldTable, value: &ConfigValue<'_>, field: &FieldRow) -> ConfigFault {
    let message = format!("{} needs `{}`", table.title(value), field.name);
    ConfigFault::new(message).help(field.example())
}

// === impl FieldRow ===

impl FieldRow {
    /// Returns an example, such as "for example `rate: 10/s`".
    fn example(&self) -> String {
        match self.shape {
            Shape::Text(example) => format!("for example `{}: {example}`", self.name),
            _ => format!("`{}`: {}", self.name, self.about),
        }
    }
}
