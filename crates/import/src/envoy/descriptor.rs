//! Flattens a descriptor and those below it into a list of limits.

use super::fields::{DESCRIPTOR, EnvoyMap, EnvoyMapFields};
use super::rate::{self, EnvoyRateLimit};
use crate::document::{ImportedFile, bad_key, bad_value, line};
use crate::draft::DescriptorStep;
use std::collections::BTreeMap;
use tidegate_config::reading::{ConfigValue, KEY_PARTS_MAX};
use tidegate_policy::text::{ConfigFault, NodeKind};

/// The maximum number of entries in a descriptor that the configuration can match.
const DEPTH_MAX: usize = 16;

/// A descriptor that becomes a limit: it has a limit, or it has nothing below it, so that nothing
/// limits it.
#[derive(Debug)]
pub(super) struct DescriptorLimit {
    /// The path to the descriptor, including itself.
    pub(super) path: Vec<DescriptorLevel>,
    /// The limit; `None` lets every request pass.
    pub(super) limit: Option<EnvoyRateLimit>,
    pub(super) shadow: bool,
    pub(super) quota: bool,
    /// The file and the line.
    pub(super) place: (String, usize),
}

/// An entry on a path.
#[derive(Clone, Debug)]
pub(super) struct DescriptorLevel {
    pub(super) step: DescriptorStep,
    /// True if all values that match its pattern share a bucket.
    pub(super) is_shared: bool,
}

impl DescriptorLevel {
    /// Returns true if each value has its own bucket.
    pub(super) fn is_open(&self) -> bool {
        let is_fixed = matches!(&self.step.value, Some(value) if !value.contains('*'));
        !is_fixed && !self.is_shared
    }
}

/// The keys and values of a list of descriptors, with the position of each.
pub(super) type Siblings = BTreeMap<(String, Option<String>), String>;

/// A walk over the descriptors of a file.
#[derive(Debug)]
pub(super) struct DescriptorWalk<'w, 'a> {
    document: &'w mut ImportedFile<'a>,
    domain: &'w str,
    /// The path to the current descriptor.
    above: Vec<DescriptorLevel>,
    found: &'w mut Vec<DescriptorLimit>,
}

impl<'w, 'a> DescriptorWalk<'w, 'a> {
    pub(super) fn new(
        document: &'w mut ImportedFile<'a>,
        domain: &'w str,
        found: &'w mut Vec<DescriptorLimit>,
    ) -> Self {
        Self {
            document,
            domain,
            above: Vec::new(),
            found,
        }
    }

    /// Reads a list of descriptors and adds them to `siblings`. Returns true if there was any.
    pub(super) fn descriptors(&mut self, value: &ConfigValue<'_>, siblings: &mut Siblings) -> bool {
        let items = self.document.items(value);
        for item in &items {
            if let Some(map) = map(self.document, item, &DESCRIPTOR) {
                self.descriptor(item, &map, siblings);
            }
        }
        !items.is_empty()
    }

    fn descriptor(&mut self, item: &ConfigValue<'_>, map: &EnvoyMap<'_>, siblings: &mut Siblings) {
        let level = self.level(item, map, siblings);
        self.above.push(level);
        if self.above.len() == DEPTH_MAX.saturating_add(1) {
            let message = format!("descriptors are nested more than {DEPTH_MAX} levels deep");
            self.document.error(map.spot(), ConfigFault::new(message));
        }
        let limit = map.get("rate_limit");
        let limit = limit.and_then(|value| rate::read(self.document, &value));
        let shadow = map.flag(self.document, "shadow_mode");
        let quota = map.flag(self.document, "quota_mode");
        self.note_extras(map);
        let at = self.found.len();
        let below = map.get("descriptors");
        let is_parent = below.is_some_and(|value| self.descriptors(&value, &mut Siblings::new()));
        if limit.is_some() || !is_parent {
            self.refuse_long_key(item);
            let found = DescriptorLimit {
                path: self.above.clone(),
                limit,
                shadow,
                quota,
                place: (self.document.file().to_owned(), line(item.node.place)),
            };
            // Insert it before the descriptors below it, in the order of the file.
            self.found.insert(at, found);
        }
        self.above.pop();
    }

    /// Returns the entry of a descriptor.
    fn level(
        &mut self,
        item: &ConfigValue<'_>,
        map: &EnvoyMap<'_>,
        siblings: &mut Siblings,
    ) -> DescriptorLevel {
        let key = map.text(self.document, "key");
        let value = map.text(self.document, "value");
        for (text, bad) in [(&key, bad_key as fn(&str) -> _), (&value, bad_value)] {
            if let Some((text, spot)) = text
                && let Some(fault) = bad(text)
            {
                self.document.error(spot.spot(), fault);
            }
        }
        let value = value.map(|(value, _)| value);
        let is_pattern = value.as_ref().is_some_and(|value| value.contains('*'));
        let is_shared = map.flag(self.document, "share_threshold");
        match &key {
            None if map.says_nothing("key") => {
                let fault = ConfigFault::new("descriptor has empty key");
                self.document
                    .error(map.spot(), fault.help("write `key: NAME`"));
            }
            // A value that is not text is already reported.
            None => {}
            Some((key, spot)) if key.contains('*') => {
                let fault = ConfigFault::new("`*` in a `key` is not supported");
                let help = "write a descriptor for each key; a `value` may be a pattern";
                self.document.error(spot.spot(), fault.help(help));
            }
            Some((key, _)) => self.refuse_twin(item, key, value.as_deref(), siblings),
        }
        let key = key.map_or_else(String::new, |(key, _)| key);
        let step = DescriptorStep { key, value };
        if let (true, false, Some(flag)) = (is_shared, is_pattern, map.get("share_threshold")) {
            let message = format!(
                "share_threshold can only be used with wildcard values (containing '*'), but found key '{}'",
                composite(&step)
            );
            let fault = ConfigFault::new(message).help("remove it, or put a `*` into `value`");
            self.document.error(flag.key_spot(), fault);
        }
        DescriptorLevel { step, is_shared }
    }

    fn refuse_twin(
        &mut self,
        item: &ConfigValue<'_>,
        key: &str,
        value: Option<&str>,
        siblings: &mut Siblings,
    ) {
        let step = DescriptorStep {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let place = format!("{}, line {}", self.document.file(), line(item.node.place));
        let composite = composite(&step);
        let Some(first) = siblings.insert((step.key, step.value), place) else {
            return;
        };
        let mut path = self.domain.to_owned();
        for level in &self.above {
            path = format!("{path}.{}", self::composite(&level.step));
        }
        let message = format!("duplicate descriptor composite key '{path}.{composite}'");
        let fault =
            ConfigFault::new(message).help(format!("the first is in {first}; remove one of them"));
        self.document.error(item.spot(), fault);
    }

    /// Reports a descriptor whose open values are more than the parts of a key. Unless a value is
    /// shared, the whole descriptor can be the key instead.
    fn refuse_long_key(&mut self, item: &ConfigValue<'_>) {
        let open = self.above.iter().filter(|level| level.is_open()).count();
        let is_shared = self.above.iter().any(|level| level.is_shared);
        if open > KEY_PARTS_MAX && is_shared {
            let message = format!(
                "more than {KEY_PARTS_MAX} entries are counted separately under a shared \
                 threshold"
            );
            let fault = ConfigFault::new(message).help("write fewer, or remove `share_threshold`");
            self.document.error(item.spot(), fault);
        }
    }

    /// Notes settings without a counterpart.
    fn note_extras(&mut self, map: &EnvoyMap<'_>) {
        for word in ["detailed_metric", "value_to_metric"] {
            if let Some(value) = map.get(word)
                && self.document.flag(&value)
            {
                let text = format!(
                    "`{word}` is skipped: metric labels are names from the configuration, never \
                     request values"
                );
                self.document.note(value.node.place, text);
            }
        }
        let Some(value) = map.get("metadata") else {
            return;
        };
        match value.node.kind {
            NodeKind::Map(_) => self.document.note(
                value.node.place,
                "`metadata` is skipped: responses have no metadata",
            ),
            NodeKind::Null | NodeKind::Broken => {}
            _ => {
                let message = format!("error parsing metadata: {}", value.node.noun());
                let fault = ConfigFault::new(message).help("expected a map");
                self.document.error(value.spot(), fault);
            }
        }
    }
}

/// Reads an item of a list, which must be a map.
pub(super) fn map<'v>(
    document: &mut ImportedFile<'_>,
    item: &ConfigValue<'v>,
    known: &EnvoyMapFields,
) -> Option<EnvoyMap<'v>> {
    match &item.node.kind {
        NodeKind::Map(_) => EnvoyMap::read(document, item, known),
        NodeKind::Broken => None,
        other => {
            let shown = match other {
                NodeKind::Text(text) => text.as_str(),
                _ => item.node.noun(),
            };
            let message = format!(
                "config error, yaml file contains list of type other than map: {}",
                ConfigFault::quote(shown)
            );
            document.error(item.spot(), ConfigFault::new(message));
            None
        }
    }
}

/// Formats a key and its value as messages of envoyproxy/ratelimit do.
fn composite(step: &DescriptorStep) -> String {
    match &step.value {
        Some(value) => format!("{}_{value}", step.key),
        None => step.key.clone(),
    }
}
