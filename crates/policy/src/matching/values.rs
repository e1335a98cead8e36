//! An index of limits that differ in one value: a tenant's header, a host.
//!
//! Where many limits have the same path condition, or none, and each requires one value of the same field,
//! they are looked up by the request's value. The cost of a request then depends only on the limits that
//! match, for ten tenants with limits or ten thousand.

use super::facts::MatchInput;
use super::trie::{Candidate, Trie, TrieWalk};
use crate::Condition;
use crate::patterns::{DescriptorPattern, HostPattern, PathPattern, ValuePattern};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The maximum number of conditions that are checked one by one. An index is not faster for so few.
const FEW: usize = 4;

/// Limits that differ in one value.
#[derive(Debug, Default)]
pub(super) struct Values {
    lists: Vec<ValueConditions>,
    /// The lists that are consulted for every request, by number.
    always: Vec<usize>,
    /// The lists that are consulted for some paths; the candidate's `limit` is the number.
    by_path: Trie,
}

/// Limits with a condition on one field, by the value that each requires.
#[derive(Debug)]
struct ValueConditions {
    of: ValueSubject,
    /// Header values in lower case.
    by_value: HashMap<Box<str>, Vec<Candidate>, RandomState>,
    /// The length of the longest value. Longer values are not looked up.
    longest: usize,
}

/// A field of a request that has a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum ValueSubject {
    /// A header, by its name in lower case.
    Header(String),
    /// An attribute.
    Attribute(String),
    /// The host.
    Host,
    /// An entry of a descriptor.
    Entry(String),
}

/// The path pattern of a condition, as written, and the field whose value it requires.
type ConditionSubject<'a> = (Option<&'a str>, ValueSubject);

/// Buffers that are reused for the next request.
#[derive(Debug, Default)]
pub(crate) struct ValuesScratch {
    walk: TrieWalk,
    lower: String,
    found: Vec<Candidate>,
}

// === impl Values ===

impl Values {
    /// Takes those of `conditions` that can be looked up by a value, and returns the others. Both are in
    /// order.
    pub(super) fn take<'a>(
        conditions: Vec<(Candidate, &'a Condition)>,
    ) -> (Self, Vec<(Candidate, &'a Condition)>) {
        let mut counts: HashMap<ConditionSubject<'a>, usize, RandomState> = HashMap::default();
        for (_, condition) in &conditions {
            for (of, _) in wanted(condition) {
                *counts.entry((path(condition), of)).or_default() += 1;
            }
        }
        let mut values = Self::default();
        let mut numbers = HashMap::default();
        let mut others = Vec::new();
        for (candidate, condition) in conditions {
            let count = |of: &ValueSubject| counts.get(&(path(condition), of.clone())).copied();
            let best = wanted(condition).max_by_key(|(of, _)| count(of));
            match best.filter(|(of, _)| count(of) > Some(FEW)) {
                Some((of, wanted)) => {
                    let number = values.list(&mut numbers, condition, of);
                    values.add(number, candidate, wanted);
                }
                None => others.push((candidate, condition)),
            }
        }
        (values, others)
    }

    /// Returns the list for a condition's path and field, added if it is new.
    fn list<'a>(
        &mut self,
        numbers: &mut HashMap<ConditionSubject<'a>, usize, RandomState>,
        condition: &'a Condition,
        of: ValueSubject,
    ) -> usize {
        let next = self.lists.len();
        let number = *numbers.entry((path(condition), of.clone())).or_insert(next);
        if number == next {
            self.lists.push(ValueConditions {
                of,
                by_value: HashMap::default(),
                longest: 0,
            });
            let candidate = Candidate {
                limit: number,
                condition: 0,
            };
            match &condition.path {
                Some(pattern) => self.by_path.add(pattern, candidate),
                None => self.always.push(number),
            }
        }
        number
    }

    fn add(&mut self, number: usize, candidate: Candidate, values: Vec<String>) {
        let Some(list) = self.lists.get_mut(number) else {
            return;
        };
        for value in values {
            list.longest = list.longest.max(value.len());
            let listed = list.by_value.entry(value.into_boxed_str()).or_default();
            // A value that is listed twice is still one candidate.
            if listed.last() != Some(&candidate) {
                listed.push(candidate);
            }
        }
    }

    /// Returns true if there are no lists.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the candidates for a value of the request, in the order written.
    // Out of line: few policies have so many limits.
    #[inline(never)]
    pub(super) fn find<'s>(
        &self,
        facts: &MatchInput<'_>,
        scratch: &'s mut ValuesScratch,
    ) -> &'s [Candidate] {
        let ValuesScratch { walk, lower, found } = scratch;
        found.clear();
        for number in &self.always {
            self.look_up(*number, facts, lower, found);
        }
        if !self.by_path.is_empty() {
            for list in self.by_path.walk(facts.path, walk) {
                self.look_up(list.limit, facts, lower, found);
            }
        }
        found.sort_unstable();
        // A request may contain a value twice.
        found.dedup();
        found
    }

    fn look_up(
        &self,
        number: usize,
        facts: &MatchInput<'_>,
        lower: &mut String,
        found: &mut Vec<Candidate>,
    ) {
        let Some(list) = self.lists.get(number) else {
            return;
        };
        let mut add = |value: &str| found.extend_from_slice(list.get(value));
        match &list.of {
            ValueSubject::Header(name) => {
                for value in facts.header(name).filter(|it| it.len() <= list.longest) {
                    lower.clear();
                    lower.push_str(value);
                    lower.make_ascii_lowercase();
                    add(lower);
                }
            }
            ValueSubject::Attribute(name) => facts.attribute(name).for_each(add),
            ValueSubject::Host => facts.host.into_iter().for_each(add),
            ValueSubject::Entry(name) => {
                let entries = facts.request.descriptors.iter().flat_map(|it| it.entries);
                let of_name = entries.filter(|(sent, _)| sent == name);
                of_name.for_each(|(_, value)| add(value));
            }
        }
    }
}

// === impl ValueConditions ===

impl ValueConditions {
    fn get(&self, value: &str) -> &[Candidate] {
        if value.len() > self.longest {
            return &[];
        }
        self.by_value.get(value).map_or(&[], Vec::as_slice)
    }
}

fn path(condition: &Condition) -> Option<&str> {
    condition.path.as_ref().map(PathPattern::as_str)
}

/// Returns the fields of which a condition requires one of these values; without such a value it cannot hold.
fn wanted(condition: &Condition) -> impl Iterator<Item = (ValueSubject, Vec<String>)> {
    let headers = condition
        .headers
        .iter()
        .filter(|(_, value)| !value.is_empty());
    let headers = headers.map(|(name, value)| {
        let of = ValueSubject::Header(name.to_ascii_lowercase());
        (of, vec![value.to_ascii_lowercase()])
    });
    let attributes = condition.attributes.iter();
    let attributes = attributes
        .map(|(name, value)| (ValueSubject::Attribute(name.clone()), vec![value.clone()]));
    let has_names =
        !condition.hosts.is_empty() && !condition.hosts.iter().any(HostPattern::is_wildcard);
    let hosts = has_names.then(|| {
        let names = condition.hosts.iter().map(|host| host.name().to_owned());
        (ValueSubject::Host, names.collect())
    });
    let entries = match &condition.descriptor {
        Some(DescriptorPattern::Holds(entries)) => entries.as_slice(),
        _ => &[],
    };
    let entries = entries.iter().filter_map(|entry| match &entry.value {
        ValuePattern::Is(value) => {
            Some((ValueSubject::Entry(entry.name.clone()), vec![value.clone()]))
        }
        _ => None,
    });
    headers.chain(attributes).chain(hosts).chain(entries)
}
