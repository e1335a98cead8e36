//! Builds the tree from the parser's events.

use super::anchors::Anchors;
use super::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
use std::collections::BTreeMap;
use tidegate_policy::text::ConfigFault;

/// The maximum nesting depth of lists and maps: far more than the language needs.
const DEPTH_MAX: usize = 64;

/// The key whose maps are merged into the map that contains it, unless it is quoted.
const MERGE: &str = "<<";

/// A tree under construction: the lists and maps that are still open, outermost first.
#[derive(Debug, Default)]
pub(super) struct TreeBuilder {
    open: Vec<OpenNode>,
    root: Option<YamlNode>,
    anchors: Anchors,
    faults: TreeFaults,
}

#[derive(Debug)]
struct OpenNode {
    place: TextSpan,
    /// The number of its anchor; 0 is none.
    anchor: usize,
    inside: OpenCollection,
}

#[derive(Debug)]
enum OpenCollection {
    List(Vec<YamlNode>),
    Map {
        entries: Vec<MapEntry>,
        /// The keys so far, with the position of each.
        seen: BTreeMap<String, TextSpan>,
        /// The entries that `<<` merges. If two have the same key, the first wins.
        merged: Vec<MapEntry>,
        /// The role of the next value.
        pending: PendingNode,
    },
    /// A list or map in the place of a key. Its contents are dropped.
    Dropped,
}

#[derive(Debug)]
enum PendingNode {
    /// The next node is a key.
    Key,
    /// The next node is the value of this key.
    Value(MapKey),
    /// The next node is merged, because of a `<<` at this position.
    Merged(TextSpan),
    /// The next node is the value of a rejected key.
    Dropped,
}

/// Faults, with their positions.
type TreeFaults = Vec<(TextSpan, ConfigFault)>;

/// The result of a step; an error ends the reading.
type TreeResult<T = ()> = Result<T, (TextSpan, ConfigFault)>;

/// Returns the fault for lists and maps that are nested too deeply.
pub(super) fn too_deep() -> ConfigFault {
    ConfigFault::new(format!("nested more than {DEPTH_MAX} levels deep"))
}

// === impl TreeBuilder ===

impl TreeBuilder {
    /// Returns the finished tree, if there is one, and its faults.
    pub(super) fn finish(self) -> (Option<YamlNode>, TreeFaults) {
        (self.root, self.faults)
    }

    /// Records a fault.
    pub(super) fn fault(&mut self, place: TextSpan, fault: ConfigFault) {
        self.faults.push((place, fault));
    }

    /// Adds a scalar.
    pub(super) fn scalar(
        &mut self,
        text: String,
        plain: bool,
        anchor: usize,
        place: TextSpan,
    ) -> TreeResult {
        let says_nothing = plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
        let is_key = self.wants_key();
        let kind = if says_nothing && !is_key {
            NodeKind::Null
        } else {
            NodeKind::Text(text)
        };
        let node = YamlNode { place, kind };
        self.define(anchor, &node)?;
        match node.kind {
            NodeKind::Text(text) if is_key => self.key(MapKey { text, place }, plain),
            _ => self.add(node),
        }
        Ok(())
    }

    /// Adds a copy of the value of the anchor with this number.
    pub(super) fn alias(&mut self, anchor: usize, place: TextSpan) -> TreeResult {
        let levels = DEPTH_MAX.saturating_sub(self.open.len());
        let value = self.anchors.repeat(anchor, place, levels);
        let value = value.map_err(|fault| (place, fault))?;
        let value = value.unwrap_or_else(|| {
            let fault = ConfigFault::new("this alias is inside the value that it repeats");
            self.fault(place, fault.help("write the value instead of the alias"));
            let kind = NodeKind::Broken;
            YamlNode { place, kind }
        });
        if !self.wants_key() {
            self.add(value);
            return Ok(());
        }
        match value.kind {
            NodeKind::Text(text) => self.key(MapKey { text, place }, false),
            NodeKind::Broken => self.drop_next_value(),
            _ => self.refuse_key(place),
        }
        Ok(())
    }

    /// Begins a list.
    pub(super) fn begin_list(&mut self, anchor: usize, place: TextSpan) -> TreeResult {
        self.begin(anchor, place, OpenCollection::List(Vec::new()))
    }

    /// Begins a map.
    pub(super) fn begin_map(&mut self, anchor: usize, place: TextSpan) -> TreeResult {
        let inside = OpenCollection::Map {
            entries: Vec::new(),
            seen: BTreeMap::new(),
            merged: Vec::new(),
            pending: PendingNode::Key,
        };
        self.begin(anchor, place, inside)
    }

    /// Ends the innermost list or map.
    pub(super) fn end(&mut self) -> TreeResult {
        let Some(OpenNode {
            place,
            anchor,
            inside,
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let kind = match inside {
            OpenCollection::List(items) => NodeKind::List(items),
            OpenCollection::Map {
                mut entries,
                mut seen,
                merged,
                ..
            } => {
                for entry in merged {
                    if !seen.contains_key(&entry.key.text) {
                        seen.insert(entry.key.text.clone(), entry.key.place);
                        entries.push(entry);
                    }
                }
                NodeKind::Map(entries)
            }
            OpenCollection::Dropped => NodeKind::Broken,
        };
        let node = YamlNode { place, kind };
        self.define(anchor, &node)?;
        if !matches!(node.kind, NodeKind::Broken) {
            self.add(node);
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, place: TextSpan, inside: OpenCollection) -> TreeResult {
        if self.open.len() >= DEPTH_MAX {
            return Err((place, too_deep()));
        }
        let inside = if self.wants_key() {
            self.refuse_key(place);
            OpenCollection::Dropped
        } else if matches!(self.innermost(), Some(OpenCollection::Dropped)) {
            OpenCollection::Dropped
        } else {
            inside
        };
        self.open.push(OpenNode {
            place,
            anchor,
            inside,
        });
        Ok(())
    }

    fn define(&mut self, anchor: usize, value: &YamlNode) -> TreeResult {
        if anchor == 0 {
            return Ok(());
        }
        let defined = self.anchors.define(anchor, value);
        defined.map_err(|fault| (value.place, fault))
    }

    fn innermost(&mut self) -> Option<&mut OpenCollection> {
        self.open.last_mut().map(|open| &mut open.inside)
    }

    fn wants_key(&mut self) -> bool {
        matches!(
            self.innermost(),
            Some(OpenCollection::Map {
                pending: PendingNode::Key,
                ..
            })
        )
    }

    fn key(&mut self, key: MapKey, plain: bool) {
        let Some(OpenCollection::Map { seen, pending, .. }) = self.innermost() else {
            return;
        };
        let merges = plain && key.text == MERGE;
        if let Some(TextSpan::File { line, .. }) = seen.get(&key.text) {
            let name = ConfigFault::quote(&key.text);
            let fault = ConfigFault::new(format!("duplicate key {name} in a map"));
            let fault = fault.help(if merges {
                format!("the first is on line {line}; merge several maps with `<<: [*a, *b]`")
            } else {
                format!("the first is on line {line}; remove one of them")
            });
            *pending = PendingNode::Dropped;
            return self.fault(key.place, fault);
        }
        seen.insert(key.text.clone(), key.place);
        *pending = if merges {
            PendingNode::Merged(key.place)
        } else {
            PendingNode::Value(key)
        };
    }

    fn refuse_key(&mut self, place: TextSpan) {
        let fault = ConfigFault::new("a key must be a single word, not a list or a map");
        self.fault(place, fault);
        self.drop_next_value();
    }

    fn drop_next_value(&mut self) {
        if let Some(OpenCollection::Map { pending, .. }) = self.innermost() {
            *pending = PendingNode::Dropped;
        }
    }

    fn add(&mut self, node: YamlNode) {
        match self.innermost() {
            None => self.root = Some(node),
            Some(OpenCollection::List(items)) => items.push(node),
            Some(OpenCollection::Map {
                entries,
                merged,
                pending,
                ..
            }) => match std::mem::replace(pending, PendingNode::Key) {
                PendingNode::Value(key) => entries.push(MapEntry { key, value: node }),
                PendingNode::Merged(place) => {
                    if let Some(fault) = merge(merged, node) {
                        self.fault(place, fault);
                    }
                }
                PendingNode::Key | PendingNode::Dropped => {}
            },
            Some(OpenCollection::Dropped) => {}
        }
    }
}

/// Adds the entries of a map, or of all maps of a list. Anything else is a fault.
fn merge(merged: &mut Vec<MapEntry>, node: YamlNode) -> Option<ConfigFault> {
    let maps = match node.kind {
        NodeKind::List(items) => items,
        _ => vec![node],
    };
    let mut fault = None;
    for map in maps {
        let found = map.noun();
        match map.kind {
            NodeKind::Map(entries) => merged.extend(entries),
            NodeKind::Broken => {}
            _ => {
                fault = Some(ConfigFault::new(format!(
                    "`<<` merges maps, but this is {found}"
                )));
            }
        }
    }
    let help = "write `<<: *name` or `<<: [*a, *b]`, with anchors of maps";
    fault.map(|fault| fault.help(help))
}
