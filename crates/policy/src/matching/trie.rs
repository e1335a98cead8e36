//! All path patterns of a policy, matched in one walk.
//!
//! ```text
//! /api/*/users$        (root) ─api→ ( ) ─*→ ( ) ─users→ (whole: 0)
//! /api/**/raw                        └─**→ (⟲) ─raw→ (prefix: 1)
//! /                    (root: prefix: 2)
//! ```
//!
//! A walk keeps the set of states that the segments read so far can lead to. Entering a state also enters its
//! `**` child, which stays for every further segment. Each state is entered at most once per segment, so no
//! pattern makes a walk explode. Only states along the path are entered, so patterns for other paths cost
//! nothing.

use crate::patterns::{PathExtent, PathPattern, Segment};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::mem;

/// A limit that may apply by one of its conditions, or a route that may be taken. Ordered as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// Index of the limit or route.
    pub(crate) limit: usize,
    /// Index of the condition; 0, which does not exist, where the limit has no conditions.
    pub(crate) condition: usize,
}

/// The patterns of a policy.
#[derive(Debug)]
pub(super) struct Trie {
    /// The states; the first is the root.
    states: Vec<State>,
    /// Candidates that require a request without a path.
    without_path: Vec<Candidate>,
}

#[derive(Debug, Default)]
struct State {
    literals: HashMap<String, usize, RandomState>,
    one: Option<usize>,
    any: Option<usize>,
    /// True for a `**`, which stays for every further segment.
    stays: bool,
    /// Patterns that end here and match any continuation.
    prefixes: Vec<Candidate>,
    /// Patterns that match if the path ends here.
    wholes: Vec<Candidate>,
}

/// The buffers of a walk, reused for the next one.
#[derive(Debug, Default)]
pub(crate) struct TrieWalk {
    current: Vec<usize>,
    next: Vec<usize>,
    marks: Vec<VisitMark>,
    /// Counts steps over all walks, so that marks need no clearing.
    step: u64,
    /// The first step of this walk.
    began: u64,
    found: Vec<Candidate>,
}

/// The last visits of a state.
#[derive(Clone, Copy, Debug, Default)]
struct VisitMark {
    /// The last step that entered it.
    entered: u64,
    /// The last step that found the prefixes that end in it.
    found: u64,
}

const ROOT: usize = 0;

// === impl Trie ===

impl Default for Trie {
    fn default() -> Self {
        Self::new()
    }
}

impl Trie {
    pub(super) fn new() -> Self {
        Self {
            states: vec![State::default()],
            without_path: Vec::new(),
        }
    }

    /// Returns true if no pattern was added.
    pub(super) fn is_empty(&self) -> bool {
        self.without_path.is_empty()
            && self.states.len() == 1
            && self
                .states
                .first()
                .is_none_or(|root| root.prefixes.is_empty() && root.wholes.is_empty())
    }

    /// Adds a pattern. Candidates must be added in order.
    pub(super) fn add(&mut self, pattern: &PathPattern, candidate: Candidate) {
        let mut at = ROOT;
        for segment in pattern.segments() {
            at = self.child(at, segment);
        }
        let Some(state) = self.states.get_mut(at) else {
            return;
        };
        match pattern.extent() {
            PathExtent::Prefix => state.prefixes.push(candidate),
            PathExtent::Whole => state.wholes.push(candidate),
            PathExtent::NoPath => self.without_path.push(candidate),
        }
    }

    /// Adds a candidate without a path condition, which matches with or without a path.
    pub(super) fn add_always(&mut self, candidate: Candidate) {
        if let Some(root) = self.states.first_mut() {
            root.prefixes.push(candidate);
        }
        self.without_path.push(candidate);
    }

    /// Returns the state that `segment` leads to, added if it is new.
    fn child(&mut self, at: usize, segment: &Segment) -> usize {
        let new = self.states.len();
        let Some(state) = self.states.get_mut(at) else {
            return at;
        };
        let child = match segment {
            Segment::Literal(text) => *state.literals.entry_ref(text.as_str()).or_insert(new),
            Segment::One => *state.one.get_or_insert(new),
            Segment::Any => *state.any.get_or_insert(new),
        };
        if child == new {
            self.states.push(State {
                stays: *segment == Segment::Any,
                ..State::default()
            });
        }
        child
    }

    /// Returns the candidates whose pattern matches a normalised path, in order.
    pub(super) fn walk<'w>(&self, path: Option<&str>, walk: &'w mut TrieWalk) -> &'w [Candidate] {
        walk.found.clear();
        let Some(path) = path else {
            walk.found.extend_from_slice(&self.without_path);
            return &walk.found;
        };
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        let mut at = ROOT;
        // Without a star ahead, there is one state at a time, and no state repeats.
        while let Some(state) = self.states.get(at) {
            if state.one.is_some() || state.any.is_some() {
                self.walk_on(at, segments, walk);
                break;
            }
            walk.found.extend_from_slice(&state.prefixes);
            // No pattern continues from here, so the rest of the path does not matter.
            if state.literals.is_empty() && state.wholes.is_empty() {
                break;
            }
            let Some(segment) = segments.next() else {
                walk.found.extend_from_slice(&state.wholes);
                break;
            };
            let Some(next) = state.literals.get(segment) else {
                break;
            };
            at = *next;
        }
        walk.found.sort_unstable();
        &walk.found
    }

    /// Continues from a state along all branches at once.
    fn walk_on<'p>(&self, at: usize, segments: impl Iterator<Item = &'p str>, walk: &mut TrieWalk) {
        walk.begin(self.states.len());
        self.enter(at, walk);
        walk.advance();
        for segment in segments {
            self.read(segment, walk);
            walk.advance();
            if walk.current.is_empty() {
                break;
            }
        }
        for at in &walk.current {
            if let Some(state) = self.states.get(*at) {
                walk.found.extend_from_slice(&state.wholes);
            }
        }
    }

    /// Enters the states that `segment` leads to from the current ones.
    fn read(&self, segment: &str, walk: &mut TrieWalk) {
        for i in 0..walk.current.len() {
            let Some(&at) = walk.current.get(i) else {
                break;
            };
            let Some(state) = self.states.get(at) else {
                break;
            };
            if state.stays {
                self.enter(at, walk);
            }
            if let Some(one) = state.one {
                self.enter(one, walk);
            }
            if let Some(literal) = state.literals.get(segment) {
                self.enter(*literal, walk);
            }
        }
    }

    /// Enters a state and its `**` child, which consumes no segment.
    fn enter(&self, at: usize, walk: &mut TrieWalk) {
        let (Some(state), Some(mark)) = (self.states.get(at), walk.marks.get_mut(at)) else {
            return;
        };
        if mark.entered == walk.step {
            return;
        }
        mark.entered = walk.step;
        if mark.found < walk.began {
            mark.found = walk.step;
            walk.found.extend_from_slice(&state.prefixes);
        }
        walk.next.push(at);
        if let Some(any) = state.any {
            self.enter(any, walk);
        }
    }
}

// === impl TrieWalk ===

impl TrieWalk {
    /// Starts a new walk over this many states.
    fn begin(&mut self, states: usize) {
        if self.marks.len() < states {
            self.marks.resize(states, VisitMark::default());
        }
        self.current.clear();
        self.next.clear();
        self.step += 1;
        self.began = self.step;
    }

    /// Makes the states just entered the current ones.
    fn advance(&mut self) {
        mem::swap(&mut self.current, &mut self.next);
        self.next.clear();
        self.step += 1;
    }

    /// Returns the number of states that the last walk entered.
    #[cfg(test)]
    pub(super) fn states_entered(&self) -> usize {
        let is_of_this_walk = |mark: &&VisitMark| mark.entered >= self.began;
        self.marks.iter().filter(is_of_this_walk).count()
    }
}
