//! Every list of entries that the limits of a policy ask for, as one tree, in which a descriptor finds
//! one place.
//!
//! The way down is that of Envoy's own rate limit service. Entry by entry, of what the tree has there,
//! the most specific is taken: the value itself, else the first pattern, as written, that it looks
//! like, else the key with any value. What was taken is never reconsidered, and the place counts only
//! if the entries end there. So a value of its own keeps others off the keyed default beside it, even
//! where nothing is limited under it.

use super::entry::{EntryPattern, ValuePattern};
use super::trie::Candidate;
use super::wildcard::Wildcard;
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use std::hash::{Hash, Hasher};

/// The lists of entries of a policy, prepared.
#[derive(Debug, Default)]
pub(super) struct DescriptorTree {
    /// The places; the first is where all begin.
    nodes: Vec<DescriptorNode>,
    /// From a place by an entry to the next.
    edges: HashMap<Edge, usize, RandomState>,
    /// From a place by the key of an entry to those of its values that have `*` in them.
    patterns: HashMap<Edge, Vec<(Wildcard, usize)>, RandomState>,
}

/// A place in the tree.
#[derive(Debug, Default)]
struct DescriptorNode {
    /// The limits that end here, in the order written.
    candidates: Vec<Candidate>,
    /// Whether any pattern begins here, so that most requests need not look for one.
    has_patterns: bool,
}

/// A place, the key of an entry, and its value; no value where any will do.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: usize,
    name: Box<str>,
    value: Option<Box<str>>,
}

/// The same, borrowed from a request.
#[derive(Clone, Copy)]
struct DescriptorEntryRef<'a> {
    from: usize,
    name: &'a str,
    value: Option<&'a str>,
}

// === impl Tree ===

impl DescriptorTree {
    /// Adds a limit that asks for exactly these entries. Limits come in order.
    pub(super) fn add(&mut self, entries: &[EntryPattern], candidate: Candidate) {
        let mut at = self.root();
        for entry in entries {
            at = self.child(at, entry);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.candidates.push(candidate);
        }
    }

    /// What may apply to a descriptor of these entries, in the order written. The rest of each condition
    /// is still to be checked.
    pub(super) fn walk(&self, entries: &[(&str, &str)]) -> &[Candidate] {
        let mut at = 0;
        for (name, value) in entries {
            match self.next(at, name, value) {
                Some(next) => at = next,
                None => return &[],
            }
        }
        self.nodes.get(at).map_or(&[], |node| &node.candidates)
    }

    /// The place that an entry leads to.
    fn next(&self, from: usize, name: &str, value: &str) -> Option<usize> {
        let exact = DescriptorEntryRef {
            from,
            name,
            value: Some(value),
        };
        if let Some(next) = self.edges.get(&exact) {
            return Some(*next);
        }
        let any = DescriptorEntryRef {
            value: None,
            ..exact
        };
        let node = self.nodes.get(from)?;
        let patterns = node.has_patterns.then(|| self.patterns.get(&any)).flatten();
        let mut patterns = patterns.into_iter().flatten();
        let found = patterns.find(|(wildcard, _)| wildcard.matches(value));
        match found {
            Some((_, next)) => Some(*next),
            None => self.edges.get(&any).copied(),
        }
    }

    fn root(&mut self) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(DescriptorNode::default());
        }
        0
    }

    /// The place below `from` that an entry leads to, new or known.
    fn child(&mut self, from: usize, entry: &EntryPattern) -> usize {
        let value = match &entry.value {
            ValuePattern::Any => None,
            ValuePattern::Is(value) => Some(value.as_str()),
            // Who sends the pattern itself has named it: then no other comes before it.
            ValuePattern::Like(wildcard) => Some(wildcard.as_str()),
        };
        let taken = DescriptorEntryRef {
            from,
            name: &entry.name,
            value,
        };
        if let Some(known) = self.edges.get(&taken) {
            return *known;
        }
        let next = self.nodes.len();
        self.nodes.push(DescriptorNode::default());
        self.edges.insert(taken.keep(), next);
        if let (ValuePattern::Like(wildcard), Some(node)) = (&entry.value, self.nodes.get_mut(from))
        {
            node.has_patterns = true;
            let any = DescriptorEntryRef {
                value: None,
                ..taken
            };
            let patterns = self.patterns.entry(any.keep()).or_default();
            patterns.push((wildcard.clone(), next));
        }
        next
    }
}

// === impl Edge, Taken ===

impl DescriptorEntryRef<'_> {
    fn keep(self) -> Edge {
        Edge {
            from: self.from,
            name: self.name.into(),
            value: self.value.map(Into::into),
        }
    }
}

impl Hash for Edge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let taken = DescriptorEntryRef {
            from: self.from,
            name: &self.name,
            value: self.value.as_deref(),
        };
        taken.hash(state);
    }
}

impl Hash for DescriptorEntryRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.from.hash(state);
        self.name.hash(state);
        self.value.hash(state);
    }
}

impl Equivalent<Edge> for DescriptorEntryRef<'_> {
    fn equivalent(&self, edge: &Edge) -> bool {
        self.from == edge.from && *self.name == *edge.name && self.value == edge.value.as_deref()
    }
}
