//! The limits of a policy, prepared: which may apply to a request, and by what key.

use super::facts::Reads;
use super::key::Key;
use super::trie::{Candidate, Trie, Walk};
use crate::{KeyPart, Limit, Missing};

/// The limits of a policy, prepared once so that a request costs what it meets and no more.
#[derive(Debug)]
pub struct Matcher {
    trie: Trie,
    /// Candidates for every request, because no path is asked for. In order.
    always: Vec<Candidate>,
    /// One for each limit.
    keys: Vec<Key>,
    reads: Reads,
    reads_address: bool,
    /// In lower case, sorted, each once.
    header_names: Vec<String>,
}

// === impl Matcher ===

impl Matcher {
    /// Prepares the limits of the policy of this name. Disabled ones are left out.
    pub fn new(policy: &str, limits: &[Limit]) -> Self {
        Self::of(limits.iter().map(|limit| (policy, limit)), limits)
    }

    /// Prepares limits, each of which has its buckets in the policy of the name beside it.
    pub(crate) fn of<'a>(
        scopes: impl Iterator<Item = (&'a str, &'a Limit)>,
        limits: &[Limit],
    ) -> Self {
        let mut trie = Trie::new();
        let mut always = Vec::new();
        for (limit, it) in limits.iter().enumerate().filter(|(_, it)| it.enabled) {
            let candidate = |condition| Candidate { limit, condition };
            if it.conditions.is_empty() {
                always.push(candidate(0));
            }
            for (i, condition) in it.conditions.iter().enumerate() {
                match &condition.path {
                    Some(pattern) => trie.add(pattern, candidate(i)),
                    None => always.push(candidate(i)),
                }
            }
        }
        Self {
            trie,
            always,
            keys: scopes
                .map(|(policy, limit)| Key::new(policy, limit))
                .collect(),
            reads: reads(limits),
            reads_address: limits.iter().any(|it| it.enabled && reads_address(it)),
            header_names: header_names(limits),
        }
    }

    /// What may apply to a request for a normalised path, in the order written. The rest of each
    /// condition is still to be checked.
    pub(super) fn candidates<'a>(
        &'a self,
        path: Option<&str>,
        walk: &'a mut Walk,
    ) -> Candidates<'a> {
        Candidates {
            always: &self.always,
            by_path: if self.trie.is_empty() {
                &[]
            } else {
                self.trie.walk(path, walk)
            },
        }
    }

    pub(super) fn key(&self, limit: usize) -> Option<&Key> {
        self.keys.get(limit)
    }

    pub(super) fn reads(&self) -> Reads {
        self.reads
    }

    pub(super) fn reads_address(&self) -> bool {
        self.reads_address
    }

    pub(super) fn header_names(&self) -> &[String] {
        &self.header_names
    }
}

/// What enabled limits look at, in conditions and keys.
fn reads(limits: &[Limit]) -> Reads {
    let mut reads = Reads::default();
    for limit in limits.iter().filter(|limit| limit.enabled) {
        reads.host |= limit.key.contains(&KeyPart::Host)
            || limit.conditions.iter().any(|it| !it.hosts.is_empty());
        reads.path |= limit.key.contains(&KeyPart::Path)
            || limit.conditions.iter().any(|it| it.path.is_some());
        reads.method |= limit.key.contains(&KeyPart::Method)
            || limit.conditions.iter().any(|it| !it.methods.is_empty());
        reads.who.user |= limit.key.contains(&KeyPart::User);
        reads.who.api_key |= limit.key.contains(&KeyPart::ApiKey);
    }
    reads
}

/// Whether a limit looks at the address, or may have to where an identity is absent.
fn reads_address(limit: &Limit) -> bool {
    limit.conditions.iter().any(|it| !it.clients.is_empty())
        || limit.key.iter().any(|part| match part {
            KeyPart::Ip => true,
            // Every HTTP request has these.
            KeyPart::Global | KeyPart::Method | KeyPart::Host | KeyPart::Path => false,
            _ => limit.missing == Missing::Address,
        })
}

/// The headers that enabled limits read.
fn header_names(limits: &[Limit]) -> Vec<String> {
    let mut names = Vec::new();
    for limit in limits.iter().filter(|limit| limit.enabled) {
        let conditions = limit.conditions.iter().flat_map(|it| &it.headers);
        names.extend(conditions.map(|(name, _)| name.to_ascii_lowercase()));
        names.extend(limit.key.iter().filter_map(|part| match part {
            KeyPart::Header(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        }));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Two lists in order, as one.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    always: &'a [Candidate],
    by_path: &'a [Candidate],
}

impl Iterator for Candidates<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let list = match (self.always.first(), self.by_path.first()) {
            (Some(always), Some(by_path)) if always < by_path => &mut self.always,
            (_, Some(_)) => &mut self.by_path,
            _ => &mut self.always,
        };
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first)
    }
}
