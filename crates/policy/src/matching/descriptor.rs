//! All lists of entries in the limits of a policy as one tree, in which a descriptor has one position.
//!
//! The descent is that of Envoy's own rate limit service. For each entry, it takes the most specific edge:
//! the exact value, else the first matching pattern in the order written, else the key with any value. It
//! never backtracks, and the position counts only if the entries end there. So an exact value shadows the
//! keyed default next to it, even where no limit is below it.

use super::trie::Candidate;
use crate::patterns::{EntryPattern, ValuePattern, Wildcard};
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use std::hash::{Hash, Hasher};

/// The lists of entries of a policy, prepared for matching.
#[derive(Debug, Default)]
pub(super) struct DescriptorTree {
    /// The nodes; the first is the root.
    nodes: Vec<DescriptorNode>,
    /// From a node and an entry to the next node.
    edges: HashMap<Edge, usize, RandomState>,
    /// From a node and an entry's key to the values that contain `*`.
    patterns: HashMap<Edge, Vec<(Wildcard, usize)>, RandomState>,
}

/// A node of the tree.
#[derive(Debug, Default)]
struct DescriptorNode {
    /// The limits whose entries end here, in the order written.
    candidates: Vec<Candidate>,
    /// True if any pattern starts here, so that most requests can skip the lookup.
    has_patterns: bool,
}

/// A node, an entry's key, and its value; `None` for any value.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: usize,
    name: Box<str>,
    value: Option<Box<str>>,
}

/// Like `Edge`, but borrowed from a request.
#[derive(Clone, Copy)]
struct DescriptorEntryRef<'a> {
    from: usize,
    name: &'a str,
    value: Option<&'a str>,
}

// === impl DescriptorTree ===

impl DescriptorTree {
    /// Adds a limit that requires exactly these entries. Limits must be added in order.
    pub(super) fn add(&mut self, entries: &[EntryPattern], candidate: Candidate) {
        let mut at = self.root();
        for entry in entries {
            at = self.child(at, entry);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.candidates.push(candidate);
        }
    }

    /// Returns the limits that may apply to a descriptor with these entries, in the order written. The rest
    /// of each condition is not checked here.
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

    /// Returns the node that an entry leads to.
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

    /// Returns the node below `from` for an entry pattern, added if it is new.
    fn child(&mut self, from: usize, entry: &EntryPattern) -> usize {
        let value = match &entry.value {
            ValuePattern::Any => None,
            ValuePattern::Is(value) => Some(value.as_str()),
            // A client that sends the pattern itself matches it exactly, before any other pattern.
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

// === impl Edge, DescriptorEntryRef ===

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
