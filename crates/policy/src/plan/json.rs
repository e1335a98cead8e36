//! JSON as a tree. Documents from programs are large, and JSON parses ten times as fast as YAML.

use crate::text::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
use serde_core::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// The position of an item whose line is unknown.
const SOMEWHERE: TextSpan = at_line(0);

const fn at_line(line: usize) -> TextSpan {
    TextSpan::at(line, 1, 1)
}

/// Parses a text that is JSON, with the lines of keys. Returns `None` for any other text: it may be YAML, and
/// that parser reports the errors.
pub(super) fn read(text: &str) -> Option<YamlNode> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let lines = LineFinder {
        text,
        seen: Cell::new((0, 1)),
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // `serde_json` bounds the nesting.
    let tree = TreeVisitor(Some(&lines))
        .deserialize(&mut deserializer)
        .ok()?;
    deserializer.end().ok()?;
    Some(tree)
}

/// Parses a text that must be JSON, without the lines of keys.
pub(super) fn read_any(text: &str) -> serde_json::Result<YamlNode> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let tree = TreeVisitor(None).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(tree)
}

pub(super) fn text(text: impl fmt::Display) -> YamlNode {
    node(NodeKind::Text(text.to_string()))
}

fn node(kind: NodeKind) -> YamlNode {
    YamlNode {
        place: SOMEWHERE,
        kind,
    }
}

/// Finds the lines of parts of a text. The parts must come in the order of the text.
struct LineFinder<'t> {
    text: &'t str,
    /// Offset and line of the part that was found last.
    seen: Cell<(usize, usize)>,
}

impl LineFinder<'_> {
    /// Returns the position of a part that is borrowed from the text.
    fn place(&self, part: &str) -> TextSpan {
        let (before, line) = self.seen.get();
        let offset = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let between = offset.and_then(|offset| self.text.get(before..offset));
        let (Some(offset), Some(between)) = (offset, between) else {
            return SOMEWHERE;
        };
        let line = line.saturating_add(between.matches('\n').count());
        self.seen.set((offset, line));
        at_line(line)
    }
}

/// Visits a value. Records the lines of keys if it has a `LineFinder`.
#[derive(Clone, Copy)]
struct TreeVisitor<'l>(Option<&'l LineFinder<'l>>);

/// Visits a key.
struct Name<'l>(Option<&'l LineFinder<'l>>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = MapKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<MapKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = MapKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<MapKey, E> {
        Ok(MapKey {
            place: self.0.map_or(SOMEWHERE, |lines| lines.place(key)),
            text: key.to_owned(),
        })
    }

    // A key with an escape is not borrowed from the text.
    fn visit_str<E>(self, key: &str) -> Result<MapKey, E> {
        Ok(MapKey {
            place: SOMEWHERE,
            text: key.to_owned(),
        })
    }
}

impl<'de> DeserializeSeed<'de> for TreeVisitor<'_> {
    type Value = YamlNode;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeVisitor<'_> {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(node(NodeKind::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(text(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(text(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(text(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
        Ok(text(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(node(NodeKind::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlNode, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(Name(self.0))? {
            let value = entries.next_value_seed(self)?;
            map.push(MapEntry { key, value });
        }
        Ok(node(NodeKind::Map(map)))
    }
}
