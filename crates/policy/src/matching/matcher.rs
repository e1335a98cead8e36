//! The limits of a policy, prepared for matching: the candidates for a request, and their keys.

use super::descriptor::DescriptorTree;
use super::facts::{FieldNeeds, MatchInput};
use super::key::PreparedKey;
use super::trie::{Candidate, Trie, TrieWalk};
use super::values::{Values, ValuesScratch};
use crate::patterns::DescriptorPattern;
use crate::{KeyPart, Limit, MissingIdentity};

/// The limits of a policy, prepared once, so that the cost of a request depends only on the limits that
/// match.
#[derive(Debug)]
pub struct Matcher {
    trie: Trie,
    /// Candidates for every request, because they have no path condition. In order.
    always: Vec<Candidate>,
    /// Candidates by a value of the request, where there are many of them.
    values: Values,
    /// Candidates for single descriptors, by their entries.
    tree: DescriptorTree,
    /// Candidates of the tree that have a path condition too.
    paths_in_tree: Trie,
    /// True if any limit replaces others.
    replaces: bool,
    /// The key of each limit, and last that of the hidden limit.
    keys: Vec<PreparedKey>,
    reads: FieldNeeds,
    reads_address: bool,
    /// The first enabled limit with a condition on the address.
    first_by_client: Option<usize>,
    /// In lower case, sorted, without duplicates.
    header_names: Vec<String>,
}

// === impl Matcher ===

impl Matcher {
    /// Prepares the limits of the policy with this name, and the hidden one. Disabled limits are left out.
    pub(crate) fn new(policy: &str, limits: &[Limit], hidden: &Limit) -> Self {
        let all = limits.iter().chain([hidden]);
        Self::of(all.map(|limit| (policy, limit)), limits)
    }

    /// Prepares limits, each with the name of the policy that its buckets belong to.
    pub(crate) fn of<'a>(
        scopes: impl Iterator<Item = (&'a str, &'a Limit)>,
        limits: &[Limit],
    ) -> Self {
        let mut trie = Trie::new();
        let mut always = Vec::new();
        let mut places = DescriptorTree::default();
        let mut paths_in_tree = Trie::new();
        let mut whole = Vec::new();
        for (limit, it) in limits.iter().enumerate().filter(|(_, it)| it.enabled) {
            let candidate = |condition| Candidate { limit, condition };
            if it.conditions.is_empty() {
                always.push(candidate(0));
            }
            for (i, condition) in it.conditions.iter().enumerate() {
                let Some(DescriptorPattern::Exactly(entries)) = &condition.descriptor else {
                    whole.push((candidate(i), condition));
                    continue;
                };
                places.add(entries, candidate(i));
                if let Some(pattern) = &condition.path {
                    paths_in_tree.add(pattern, candidate(i));
                }
            }
        }
        let (values, others) = Values::take(whole);
        for (candidate, condition) in others {
            match &condition.path {
                Some(pattern) => trie.add(pattern, candidate),
                None => always.push(candidate),
            }
        }
        // Candidates of limits without conditions were added first.
        always.sort_unstable();
        Self {
            trie,
            always,
            values,
            tree: places,
            paths_in_tree,
            replaces: limits
                .iter()
                .any(|it| it.enabled && !it.replaces.is_empty()),
            keys: scopes
                .map(|(policy, limit)| PreparedKey::new(policy, limit))
                .collect(),
            reads: reads(limits),
            reads_address: limits.iter().any(|it| it.enabled && reads_address(it)),
            first_by_client: limits
                .iter()
                .position(|it| it.enabled && selects_clients(it)),
            header_names: header_names(limits),
        }
    }

    /// Declares that the address is read, even if no limit reads it.
    pub(crate) fn read_address(&mut self) {
        self.reads_address = true;
    }

    /// Declares that guards read these fields too.
    pub(crate) fn read_too<'a>(
        &mut self,
        reads: FieldNeeds,
        subjects: impl Iterator<Item = &'a KeyPart>,
    ) {
        self.reads.host |= reads.host;
        self.reads.path |= reads.path;
        self.reads.method |= reads.method;
        self.reads.who.user |= reads.who.user;
        self.reads.who.api_key |= reads.who.api_key;
        for subject in subjects {
            match subject {
                KeyPart::Ip => self.reads_address = true,
                KeyPart::Header(name) => self.header_names.push(name.to_ascii_lowercase()),
                _ => {}
            }
        }
        self.header_names.sort_unstable();
        self.header_names.dedup();
    }

    /// Returns the candidates for a request, in the order written. The rest of each condition is not checked
    /// yet.
    pub(crate) fn candidates<'a>(
        &'a self,
        facts: &MatchInput<'_>,
        walk: &'a mut TrieWalk,
        values: &'a mut ValuesScratch,
    ) -> Candidates<'a> {
        Candidates {
            always: &self.always,
            by_path: if self.trie.is_empty() {
                &[]
            } else {
                self.trie.walk(facts.path, walk)
            },
            by_value: if self.values.is_empty() {
                &[]
            } else {
                self.values.find(facts, values)
            },
        }
    }

    /// Returns the candidates for a descriptor with these entries, in the order written. The rest of each
    /// condition, including the path, is not checked yet.
    pub(crate) fn described(&self, entries: &[(&str, &str)]) -> &[Candidate] {
        self.tree.walk(entries)
    }

    /// Returns those candidates of [`described`](Self::described) whose path condition holds, in the order
    /// written. Returns `None` if none of them has a path condition.
    pub(crate) fn described_paths<'a>(
        &'a self,
        path: Option<&str>,
        walk: &'a mut TrieWalk,
    ) -> Option<&'a [Candidate]> {
        let asks = !self.paths_in_tree.is_empty();
        asks.then(|| self.paths_in_tree.walk(path, walk))
    }

    /// Returns true if any limit replaces others.
    pub(crate) fn replaces(&self) -> bool {
        self.replaces
    }

    pub(crate) fn key(&self, limit: usize) -> Option<&PreparedKey> {
        self.keys.get(limit)
    }

    pub(crate) fn reads(&self) -> FieldNeeds {
        self.reads
    }

    pub(crate) fn reads_address(&self) -> bool {
        self.reads_address
    }

    /// Returns the first enabled limit with a condition on the address.
    pub(crate) fn first_by_client(&self) -> Option<usize> {
        self.first_by_client
    }

    pub(crate) fn header_names(&self) -> &[String] {
        &self.header_names
    }
}

/// Returns the fields that enabled limits read, in conditions and keys.
fn reads(limits: &[Limit]) -> FieldNeeds {
    let mut reads = FieldNeeds::default();
    for limit in limits.iter().filter(|limit| limit.enabled) {
        let looks_at = |part: &KeyPart| limit.identities().any(|it| it == part);
        reads.host |=
            looks_at(&KeyPart::Host) || limit.conditions.iter().any(|it| !it.hosts.is_empty());
        reads.path |=
            looks_at(&KeyPart::Path) || limit.conditions.iter().any(|it| it.path.is_some());
        reads.method |=
            looks_at(&KeyPart::Method) || limit.conditions.iter().any(|it| !it.methods.is_empty());
        reads.who.user |= looks_at(&KeyPart::User);
        reads.who.api_key |= looks_at(&KeyPart::ApiKey);
    }
    reads
}

/// Returns true if a limit has a condition on the address.
fn selects_clients(limit: &Limit) -> bool {
    limit.conditions.iter().any(|it| !it.clients.is_empty())
}

/// Returns true if a limit reads the address, or may need it in place of an absent identity.
fn reads_address(limit: &Limit) -> bool {
    selects_clients(limit)
        || limit.key.iter().any(|part| match part {
            KeyPart::Ip => true,
            // Every HTTP request has these.
            KeyPart::Global | KeyPart::Method | KeyPart::Host | KeyPart::Path => false,
            _ => limit.missing == MissingIdentity::Address,
        })
}

/// Returns the headers that enabled limits read.
fn header_names(limits: &[Limit]) -> Vec<String> {
    let mut names = Vec::new();
    for limit in limits.iter().filter(|limit| limit.enabled) {
        let conditions = limit.conditions.iter().flat_map(|it| &it.headers);
        names.extend(conditions.map(|(name, _)| name.to_ascii_lowercase()));
        names.extend(limit.identities().filter_map(|part| match part {
            KeyPart::Header(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        }));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Merges three sorted lists.
#[derive(Debug)]
pub(crate) struct Candidates<'a> {
    always: &'a [Candidate],
    by_path: &'a [Candidate],
    by_value: &'a [Candidate],
}

impl Iterator for Candidates<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let list = match (self.always.first(), self.by_path.first()) {
            (Some(always), Some(by_path)) if always < by_path => &mut self.always,
            (_, Some(_)) => &mut self.by_path,
            _ => &mut self.always,
        };
        let list = match (list.first(), self.by_value.first()) {
            (Some(first), Some(by_value)) if first < by_value => list,
            (_, Some(_)) => &mut self.by_value,
            _ => list,
        };
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first)
    }
}
