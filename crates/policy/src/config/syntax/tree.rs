//! Builds the tree as the parser goes along.

use super::{Entry, Key, Kind, Node, Place};
use crate::config::fault::Fault;
use std::collections::BTreeMap;

/// A tree under construction: the lists and maps that are still open, outermost first.
#[derive(Debug, Default)]
pub(super) struct Tree {
    open: Vec<Open>,
    root: Option<Node>,
}

#[derive(Debug)]
struct Open {
    place: Place,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// The keys so far, and where each was first written.
        seen: BTreeMap<String, Place>,
        /// What the next value belongs to.
        pending: Pending,
    },
    /// Stands where a key should be; what it holds is dropped.
    Dropped,
}

#[derive(Debug)]
enum Pending {
    /// The next thing is a key.
    Key,
    /// The next thing is the value of this key.
    Value(Key),
    /// The next thing is the value of a key that has been refused.
    Dropped,
}

type Faults = Vec<(Place, Fault)>;

// === impl Tree ===

impl Tree {
    /// How many lists and maps are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The finished tree, if there is one.
    pub(super) fn into_root(self) -> Option<Node> {
        self.root
    }

    /// Adds a scalar.
    pub(super) fn scalar(&mut self, text: String, plain: bool, place: Place, faults: &mut Faults) {
        if self.wants_key() {
            self.key(Key { text, place }, faults);
            return;
        }
        let says_nothing = plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
        let kind = if says_nothing {
            Kind::Null
        } else {
            Kind::Text(text)
        };
        self.add(Node { place, kind });
    }

    /// Adds something that has been reported already.
    pub(super) fn broken(&mut self, place: Place) {
        if self.wants_key() {
            self.drop_next_value();
            return;
        }
        self.add(Node {
            place,
            kind: Kind::Broken,
        });
    }

    /// Begins a list.
    pub(super) fn begin_list(&mut self, place: Place, faults: &mut Faults) {
        self.begin(place, Inside::List(Vec::new()), faults);
    }

    /// Begins a map.
    pub(super) fn begin_map(&mut self, place: Place, faults: &mut Faults) {
        let inside = Inside::Map {
            entries: Vec::new(),
            seen: BTreeMap::new(),
            pending: Pending::Key,
        };
        self.begin(place, inside, faults);
    }

    /// Ends the innermost list or map.
    pub(super) fn end(&mut self) {
        let Some(Open { place, inside }) = self.open.pop() else {
            return;
        };
        let kind = match inside {
            Inside::List(items) => Kind::List(items),
            Inside::Map { entries, .. } => Kind::Map(entries),
            Inside::Dropped => return,
        };
        self.add(Node { place, kind });
    }

    fn begin(&mut self, place: Place, inside: Inside, faults: &mut Faults) {
        let inside = if self.wants_key() {
            faults.push((
                place,
                Fault::new("a key must be a single word, not a list or a map"),
            ));
            self.drop_next_value();
            Inside::Dropped
        } else if matches!(self.innermost(), Some(Inside::Dropped)) {
            Inside::Dropped
        } else {
            inside
        };
        self.open.push(Open { place, inside });
    }

    fn innermost(&mut self) -> Option<&mut Inside> {
        self.open.last_mut().map(|open| &mut open.inside)
    }

    fn wants_key(&mut self) -> bool {
        matches!(
            self.innermost(),
            Some(Inside::Map {
                pending: Pending::Key,
                ..
            })
        )
    }

    fn key(&mut self, key: Key, faults: &mut Faults) {
        let Some(Inside::Map { seen, pending, .. }) = self.innermost() else {
            return;
        };
        if let Some(Place::File { line, .. }) = seen.get(&key.text) {
            let name = Fault::quote(&key.text);
            let fault = Fault::new(format!("{name} is written twice in the same map"))
                .help(format!("the first is on line {line}; remove one of them"));
            faults.push((key.place, fault));
            *pending = Pending::Dropped;
        } else {
            seen.insert(key.text.clone(), key.place);
            *pending = Pending::Value(key);
        }
    }

    fn drop_next_value(&mut self) {
        if let Some(Inside::Map { pending, .. }) = self.innermost() {
            *pending = Pending::Dropped;
        }
    }

    fn add(&mut self, node: Node) {
        match self.innermost() {
            None => self.root = Some(node),
            Some(Inside::List(items)) => items.push(node),
            Some(Inside::Map {
                entries, pending, ..
            }) => {
                if let Pending::Value(key) = std::mem::replace(pending, Pending::Key) {
                    entries.push(Entry { key, value: node });
                }
            }
            Some(Inside::Dropped) => {}
        }
    }
}
