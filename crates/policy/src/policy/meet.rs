//! The limits that apply to a request, and the keys of their buckets.

use super::Policy;
use super::search::LimitSearch;
use crate::Limit;
use crate::client::IdentityNeeds;
use crate::matching::{KeyRules, MatchInput, Spellings, TrieWalk, ValuesScratch};
use crate::plan::{PlanAnswer, PlanLookup, Tables};
use crate::request::Request;
use std::fmt;
use std::ops::Range;

/// Buffers that are reused for the next request, so that matching allocates nothing once they have grown.
/// They may serve several policies, one after the other.
#[derive(Default)]
pub struct Scratch {
    spellings: Spellings,
    walk: TrieWalk,
    values: ValuesScratch,
    met: Vec<MetLimit>,
    text: String,
    /// Limits that do not apply because another limit replaces them.
    replaced: Vec<usize>,
    /// Limits that refuse because an identity is missing.
    refusing: Vec<UnmetLimit>,
    /// Limits in shadow mode that would refuse for that reason.
    watching: Vec<UnmetLimit>,
}

/// A limit that applies to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetLimit {
    /// Its index in [`Policy::limits`]; the hidden limit comes after the last, see [`Policy::limit`].
    pub limit: usize,
    /// The range of its bucket's name in the text; see [`MetLimits::bucket`].
    pub bucket: Range<usize>,
    /// The number of leading bytes of that name that all subjects of the limit share: `policy/limit/`.
    pub scope: usize,
    /// The range of its key as shown to operators, which may be outside the bucket's name; see
    /// [`MetLimits::subject`].
    pub subject: Range<usize>,
    /// The descriptor that matches it, by its number in [`Request::descriptors`]; `None` where the request as
    /// a whole matches.
    pub descriptor: Option<u16>,
    /// The result of its plan, if it has one.
    pub planned: PlanAnswer,
}

/// A limit that refuses a request because an identity is missing, or because its plan has no rate for the
/// subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmetLimit {
    /// Its index in [`Policy::limits`].
    pub limit: usize,
    /// The descriptor that would match it; `None` where the request as a whole would.
    pub descriptor: Option<u16>,
    /// The result of its plan; [`PlanAnswer::NotAsked`] where an identity is missing.
    pub planned: PlanAnswer,
}

/// The limits that apply to a request.
#[derive(Clone, Copy, Debug)]
pub struct MetLimits<'s> {
    /// First the limits of the request as a whole, each once, in the order written; then those of each
    /// descriptor in turn. Several descriptors may match one limit, in the same bucket or in different ones.
    pub met: &'s [MetLimit],
    /// The first limit that refuses the request because an identity is missing. `met` is then empty.
    pub refused: Option<UnmetLimit>,
    /// The limits in shadow mode that would refuse the request for the same reason. `met` does not contain
    /// them.
    pub watching: &'s [UnmetLimit],
    text: &'s str,
}

// === impl Scratch ===

// Written by hand because it holds data from clients.
impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Scratch {
    /// Returns the limits of the last match.
    pub fn meeting(&self) -> MetLimits<'_> {
        MetLimits {
            met: &self.met,
            refused: self.refusing.first().copied(),
            watching: &self.watching,
            text: &self.text,
        }
    }
}

// === impl MetLimits ===

impl<'s> MetLimits<'s> {
    /// Returns the name of the bucket, `policy/limit/ip:192.0.2.1`. It is printable ASCII, and the same on
    /// every instance.
    pub fn bucket(&self, met: &MetLimit) -> &'s [u8] {
        self.text
            .get(met.bucket.clone())
            .unwrap_or_default()
            .as_bytes()
    }

    /// Returns the key as shown to operators, `ip:192.0.2.1`: secrets only as a hash, special characters
    /// escaped.
    pub fn subject(&self, met: &MetLimit) -> &'s str {
        self.text.get(met.subject.clone()).unwrap_or_default()
    }
}

// === impl Policy ===

impl Policy {
    /// Returns the limits that apply to `request`: first those of the request as a whole, in the order
    /// written, then those of each descriptor in turn.
    ///
    /// With [`Evaluate::First`](crate::Evaluate::First) each of these searches ends with the first enforced
    /// limit. A limit whose identity is absent is skipped or refuses the request, depending on its
    /// [`MissingIdentity`](crate::MissingIdentity). A skipped limit does not end the search. A limit in
    /// shadow mode never refuses; it is listed in `watching` instead. Limits that another applicable limit
    /// replaces are removed at the end.
    pub fn meet<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        scratch: &'s mut Scratch,
    ) -> MetLimits<'s> {
        self.match_with(request, rules, &[], scratch)
    }

    /// Like [`meet`](Self::meet), with plans: `tables` are those of the configuration's sources, by their
    /// numbers. For a subject that is not in its table, or whose table is absent, the limit's setting for
    /// unknown subjects applies.
    pub fn match_with<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        tables: &Tables,
        scratch: &'s mut Scratch,
    ) -> MetLimits<'s> {
        self.match_with_lookup(request, rules, tables.into(), scratch)
    }

    /// Like [`match_with`](Self::match_with), for callers that have computed the digest of a text of the
    /// request already.
    pub fn match_with_lookup<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        lookup: PlanLookup<'_>,
        scratch: &'s mut Scratch,
    ) -> MetLimits<'s> {
        #[cfg(debug_assertions)]
        crate::work::count_matching();
        let Scratch {
            spellings,
            walk,
            values,
            met,
            text,
            replaced,
            refusing,
            watching,
        } = scratch;
        met.clear();
        text.clear();
        refusing.clear();
        watching.clear();
        let facts = MatchInput::of(request, self.matcher.reads(), spellings);
        let mut search = LimitSearch {
            policy: self,
            rules,
            lookup,
            met,
            text,
            refusing,
            watching,
        };
        let is_over = search.whole(&facts, walk, values).is_break();
        if !request.descriptors.is_empty() && !is_over {
            search.described(&facts, walk);
        }
        if self.matcher.replaces() {
            search.replace(replaced);
        }
        let refused = refusing.first().copied();
        if refused.is_some() {
            met.clear();
        }
        MetLimits {
            met,
            refused,
            watching,
            text,
        }
    }

    /// Returns the names, in lower case, of the headers that any condition or key reads. Frontends need to
    /// copy no others.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.matcher.header_names().iter().map(String::as_str)
    }

    /// Returns true if any condition or key reads the path, so that a frontend has to provide it.
    pub fn reads_path(&self) -> bool {
        self.matcher.reads().path
    }

    /// Returns true if any condition or key reads the host.
    pub fn reads_host(&self) -> bool {
        self.matcher.reads().host
    }

    /// Returns true if any condition or key reads the method.
    pub fn reads_method(&self) -> bool {
        self.matcher.reads().method
    }

    /// Returns the identities that any key reads.
    pub fn identity_needs(&self) -> IdentityNeeds {
        self.matcher.reads().who
    }

    /// Returns true if any condition or key reads the client's address, or a key falls back to it where an
    /// identity is absent. Method, host and path are never absent in an HTTP request.
    pub fn reads_address(&self) -> bool {
        self.matcher.reads_address()
    }
    /// Returns a limit that lacks the address of a request without one: its bucket is that of all unknown
    /// clients, or its condition on the address cannot match. `meeting` has the limits of that request.
    pub fn without_address(&self, meeting: &MetLimits<'_>) -> Option<&Limit> {
        let is_shared = |met: &&MetLimit| {
            let key = self.matcher.key(met.limit);
            key.is_some_and(|key| key.is_unknown_client(meeting.subject(met)))
        };
        let shared = meeting.met.iter().find(is_shared).map(|met| met.limit);
        self.limits.get(shared.or(self.matcher.first_by_client())?)
    }
}
