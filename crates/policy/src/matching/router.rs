//! All routes, prepared for matching.
//!
//! Gateways with many routes have many hosts, so hosts are looked up first. Each host in a condition has its
//! own trie with the paths of its conditions, and so has each wildcard domain. A request walks the tries of
//! its host and the one for all hosts. Of the candidates found, the first in the order written is taken.

use super::trie::{Candidate, Trie, TrieWalk};
use crate::Condition;
use crate::patterns::{HostPattern, PathPattern, canonical_host, normalise};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;

/// The conditions of all routes, prepared once, so that the cost of a request depends only on the routes that
/// match.
#[derive(Debug, Default)]
pub(crate) struct Router {
    /// Conditions without a host.
    anywhere: Trie,
    /// By host.
    hosts: HashMap<String, Trie, RandomState>,
    /// By domain, from its dot on.
    domains: HashMap<String, Trie, RandomState>,
    /// The length of the longest domain. Longer suffixes of a host are not looked up.
    longest_domain: usize,
    /// The methods of each condition, by route; none = any method.
    methods: Vec<Vec<Vec<String>>>,
}

/// Buffers that are reused for the next request.
#[derive(Default)]
pub(crate) struct RouterScratch {
    host: String,
    path: String,
    walk: TrieWalk,
}

// === impl Router ===

impl Router {
    /// Prepares routes with these conditions, in this order. A route with `None` never matches.
    pub(crate) fn new<'a>(routes: impl Iterator<Item = Option<&'a [Condition]>>) -> Self {
        let mut prepared = Self::default();
        for (route, conditions) in routes.enumerate() {
            let Some(conditions) = conditions else {
                prepared.methods.push(Vec::new());
                continue;
            };
            if conditions.is_empty() {
                prepared.add(&Condition::default(), candidate(route, 0));
            }
            for (i, condition) in conditions.iter().enumerate() {
                prepared.add(condition, candidate(route, i));
            }
            let methods = conditions.iter().map(|it| it.methods.clone());
            prepared.methods.push(methods.collect());
        }
        prepared
    }

    fn add(&mut self, condition: &Condition, candidate: Candidate) {
        if condition.hosts.is_empty() {
            add_path(&mut self.anywhere, condition.path.as_ref(), candidate);
        }
        for (i, host) in condition.hosts.iter().enumerate() {
            // A host that is listed twice is still one candidate.
            if condition.hosts.iter().take(i).any(|it| it.same_as(host)) {
                continue;
            }
            let by_name = if host.is_wildcard() {
                self.longest_domain = self.longest_domain.max(host.name().len());
                &mut self.domains
            } else {
                &mut self.hosts
            };
            let trie = by_name.entry_ref(host.name()).or_default();
            add_path(trie, condition.path.as_ref(), candidate);
        }
    }

    /// Returns the first route and condition, in the order written, that hold for a request.
    pub(crate) fn find(
        &self,
        method: &str,
        host: Option<&str>,
        path: &str,
        scratch: &mut RouterScratch,
    ) -> Option<(usize, usize)> {
        let path = normalise(path, &mut scratch.path);
        let mut search = RouteSearch {
            methods: &self.methods,
            method,
            path,
            best: None,
        };
        search.walk(&self.anywhere, &mut scratch.walk);
        let host = host.filter(|_| self.reads_host());
        if let Some(host) = host.and_then(|host| canonical_host(host, &mut scratch.host)) {
            if let Some(trie) = self.hosts.get(host) {
                search.walk(trie, &mut scratch.walk);
            }
            for trie in self.domains_of(host).filter_map(|it| self.domains.get(it)) {
                search.walk(trie, &mut scratch.walk);
            }
        }
        let best = search.best?;
        Some((best.limit, best.condition))
    }

    /// Returns true if any route is restricted to certain hosts.
    pub(crate) fn reads_host(&self) -> bool {
        !self.hosts.is_empty() || !self.domains.is_empty()
    }

    /// Returns the domains that contain a host, from its dots on, up to the longest domain of any route.
    pub(super) fn domains_of<'a>(&self, host: &'a str) -> impl Iterator<Item = &'a str> {
        let longest = self.longest_domain;
        let dots = host.rmatch_indices('.').map(|(at, _)| at);
        dots.take_while(move |at| *at > 0 && host.len() - at <= longest)
            .filter_map(|at| host.get(at..))
    }
}

fn candidate(route: usize, condition: usize) -> Candidate {
    Candidate {
        limit: route,
        condition,
    }
}

fn add_path(trie: &mut Trie, path: Option<&PathPattern>, candidate: Candidate) {
    match path {
        Some(pattern) => trie.add(pattern, candidate),
        None => trie.add_always(candidate),
    }
}

/// The input of a search, and the best candidate so far.
struct RouteSearch<'a> {
    methods: &'a [Vec<Vec<String>>],
    method: &'a str,
    path: Option<&'a str>,
    best: Option<Candidate>,
}

impl RouteSearch<'_> {
    fn walk(&mut self, trie: &Trie, walk: &mut TrieWalk) {
        if trie.is_empty() {
            return;
        }
        for candidate in trie.walk(self.path, walk) {
            if self.best.is_some_and(|best| best <= *candidate) {
                return;
            }
            if self.method_holds(*candidate) {
                self.best = Some(*candidate);
                return;
            }
        }
    }

    fn method_holds(&self, candidate: Candidate) -> bool {
        let of_route = self.methods.get(candidate.limit);
        let methods = of_route.and_then(|conditions| conditions.get(candidate.condition));
        methods.is_none_or(|methods| {
            methods.is_empty()
                || methods
                    .iter()
                    .any(|it| it.eq_ignore_ascii_case(self.method))
        })
    }
}

// === impl RouterScratch ===

// Written by hand because it holds data from clients.
impl fmt::Debug for RouterScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouterScratch").finish_non_exhaustive()
    }
}

// === impl HostPattern ===

impl HostPattern {
    fn same_as(&self, other: &Self) -> bool {
        self.name() == other.name() && self.is_wildcard() == other.is_wildcard()
    }
}
