//! What a map may hold: told once, for the reader and for the schema.

use super::fault::Fault;
use super::reader::{Reader, Value};
use super::suggest::closest;
use super::syntax::{Entry, Kind};
use super::words::{Vocabulary, one_of};

/// The fields that a map may have.
pub(crate) struct Table {
    /// What the map describes, such as "limit".
    pub(crate) what: &'static str,
    pub(crate) fields: &'static [Field],
    /// Exactly one of these must be there, if there are any.
    pub(crate) exactly_one: &'static [&'static str],
}

/// A field of a map.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// What it means, for people.
    pub(crate) about: &'static str,
    pub(crate) required: bool,
}

/// What a value looks like.
pub(crate) enum Shape {
    /// Text, such as the example.
    Text(&'static str),
    /// One of these words.
    Word(&'static dyn Vocabulary),
    /// `true` or `false`.
    Flag,
    /// A whole number, from and to.
    Whole(u64, u64),
    /// A decimal, more than 0 and up to 1.
    Share,
    /// A list of values.
    List(&'static Shape),
    /// Any of these.
    Either(&'static [Shape]),
    /// A map from names to text.
    Pairs,
    /// A map from names of one's own to such values.
    Named(&'static Shape),
    /// A map with these fields.
    Map(&'static Table),
}

/// The fields of one map.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    table: &'static Table,
    map: Value<'a>,
    entries: &'a [Entry],
}

// === impl Table ===

impl Table {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }

    /// Such as "limit `per-client`", as far as the map has a name.
    fn title(&self, map: &Value<'_>) -> String {
        let name = map.node.get("name").or_else(|| map.node.get("id"));
        match name.and_then(|name| name.as_text()) {
            Some(name) => format!("{} {}", self.what, Fault::quote(name)),
            None => Fault::article(self.what),
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The value of a field, if it is written.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'a>> {
        debug_assert!(
            self.table.names().any(|known| known == name),
            "{name} is in no table"
        );
        let entry = self.entries.iter().find(|entry| entry.key.text == name)?;
        Some(self.map.child(&entry.key, &entry.value))
    }

    /// The map itself.
    pub(crate) fn map(&self) -> &Value<'a> {
        &self.map
    }

    /// Whether the map says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// The fields of a map, all of which `table` must know.
    pub(crate) fn fields<'v>(
        &mut self,
        value: &Value<'v>,
        table: &'static Table,
    ) -> Option<Fields<'v>> {
        let Kind::Map(entries) = &value.node.kind else {
            let expected = match Fault::article(table.what) {
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
                self.error(spot, unknown_field(table, value, &entry.key.text));
                meant.extend(closest(&entry.key.text, table.names()));
            }
        }
        // A field that is there and misspelled has been reported already.
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
        Some(Fields {
            table,
            map: value.clone(),
            entries,
        })
    }

    /// The value of a field as `parse` understands it, if it is written.
    pub(crate) fn setting<T>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        self.parse(&fields.get(name)?, parse)
    }

    fn check_exactly_one(&mut self, value: &Value<'_>, table: &Table, entries: &[Entry]) {
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
                self.error(value.spot(), Fault::new(message).maybe_help(example));
            }
            (Some(first), Some(second)) => {
                let spot = value.child(&second.key, &second.value).key_spot();
                let fault = Fault::new(format!(
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

fn unknown_field(table: &Table, value: &Value<'_>, name: &str) -> Fault {
    let message = format!(
        "unknown field {} in {}",
        Fault::quote(name),
        table.title(value)
    );
    let names: Vec<&str> = table.names().collect();
    let meant = closest(name, names.iter().copied());
    let meant = meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "));
    Fault::new(message).help(format!("{meant}expected {}", one_of(&names)))
}

fn missing_field(table: &Table, value: &Value<'_>, field: &Field) -> Fault {
    let message = format!("{} needs `{}`", table.title(value), field.name);
    Fault::new(message).help(field.example())
}

// === impl Field ===

impl Field {
    /// Such as "for example `rate: 10/s`".
    fn example(&self) -> String {
        match self.shape {
            Shape::Text(example) => format!("for example `{}: {example}`", self.name),
            _ => format!("`{}`: {}", self.name, self.about),
        }
    }
}
