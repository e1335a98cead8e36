//! Values with an anchor (`&name`), which aliases (`*name`) repeat.
//!
//! An alias becomes a copy of the value, so no later stage needs to know about aliases. The total size
//! of the values kept for aliases and of their copies is bounded: a small file cannot expand into a
//! large one.

use super::tree::too_deep;
use super::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
use std::collections::BTreeMap;
use tidegate_policy::text::ConfigFault;

/// The maximum number of values that anchors and aliases may copy.
const VALUES_MAX: usize = 200_000;

/// The maximum number of bytes of text that anchors and aliases may copy.
const BYTES_MAX: usize = 4 << 20;

/// The complete values that have an anchor, by the number that the parser assigns to the anchor.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    values: BTreeMap<usize, YamlNode>,
    copied: CopySize,
}

/// The total size of all copies so far.
#[derive(Debug, Default)]
struct CopySize {
    values: usize,
    bytes: usize,
}

// === impl Anchors ===

impl Anchors {
    /// Keeps the value of an anchor. Fails if too much has been copied.
    pub(super) fn define(&mut self, anchor: usize, value: &YamlNode) -> Result<(), ConfigFault> {
        let value = self.copied.copy(value, None, usize::MAX)?;
        self.values.insert(anchor, value);
        Ok(())
    }

    /// Returns the value of an anchor, repeated by an alias at `alias`. Returns `None` if the value is
    /// incomplete because it contains the alias itself. Fails if too much has been copied, or if the
    /// value has more than `levels` levels.
    pub(super) fn repeat(
        &mut self,
        anchor: usize,
        alias: TextSpan,
        levels: usize,
    ) -> Result<Option<YamlNode>, ConfigFault> {
        let value = self.values.get(&anchor);
        value
            .map(|value| self.copied.copy(value, Some(alias), levels))
            .transpose()
    }
}

// === impl Copied ===

impl CopySize {
    /// Copies a value. The recursion is as deep as the value, which is bounded.
    fn copy(
        &mut self,
        from: &YamlNode,
        alias: Option<TextSpan>,
        levels: usize,
    ) -> Result<YamlNode, ConfigFault> {
        self.add(from.as_text().unwrap_or_default())?;
        let repeated = |place: TextSpan| alias.map_or(place, |alias| place.repeated_at(alias));
        let inside = || levels.checked_sub(1).ok_or_else(too_deep);
        let kind = match &from.kind {
            NodeKind::List(items) => {
                let levels = inside()?;
                let items = items.iter().map(|item| self.copy(item, alias, levels));
                NodeKind::List(items.collect::<Result<_, _>>()?)
            }
            NodeKind::Map(entries) => {
                let levels = inside()?;
                let mut copies = Vec::new();
                for MapEntry { key, value } in entries {
                    self.add(&key.text)?;
                    let text = key.text.clone();
                    let place = repeated(key.place);
                    let key = MapKey { text, place };
                    let value = self.copy(value, alias, levels)?;
                    copies.push(MapEntry { key, value });
                }
                NodeKind::Map(copies)
            }
            NodeKind::Text(_) | NodeKind::Null | NodeKind::Broken => from.kind.clone(),
        };
        let place = repeated(from.place);
        Ok(YamlNode { place, kind })
    }

    fn add(&mut self, text: &str) -> Result<(), ConfigFault> {
        self.values = self.values.saturating_add(1);
        self.bytes = self.bytes.saturating_add(text.len());
        if self.values <= VALUES_MAX && self.bytes <= BYTES_MAX {
            return Ok(());
        }
        let (values, size) = (VALUES_MAX, BYTES_MAX >> 20);
        let fault = ConfigFault::new(format!(
            "anchors and aliases copy more than {values} values or {size} MiB of text"
        ));
        Err(fault.help("repeat smaller values, or split the file"))
    }
}
