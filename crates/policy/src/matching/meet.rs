//! Which limits a request meets, and in which buckets.

use super::facts::{MatchInput, Spellings};
use super::key::KeyRules;
use super::search::LimitSearch;
use super::trie::TrieWalk;
use super::values::ValuesScratch;
use crate::client::IdentityNeeds;
use crate::plan::{PlanAnswer, PlanLookup, Tables};
use crate::{Policy, Request};
use std::fmt;
use std::ops::Range;

/// Buffers, kept from one request to the next so that meeting allocates nothing once they have
/// grown. One may serve several policies, one after the other.
#[derive(Default)]
pub struct Scratch {
    spellings: Spellings,
    walk: TrieWalk,
    values: ValuesScratch,
    met: Vec<Met>,
    text: String,
    /// Limits that do not apply because another does.
    replaced: Vec<usize>,
    /// Limits that refuse because an identity is missing.
    refusing: Vec<UnmetLimit>,
    /// Limits in shadow mode that would refuse for that reason.
    watching: Vec<UnmetLimit>,
}

/// A limit that a request meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Its index in [`Policy::limits`]; the hidden limit comes after the last, see [`Policy::limit`].
    pub limit: usize,
    /// Where the name of its bucket stands; see [`MetLimits::bucket`].
    pub bucket: Range<usize>,
    /// How many leading bytes of that name all subjects of the limit share: `policy/limit/`.
    pub scope: usize,
    /// Where its key stands as people are shown it, which may be outside the name of the bucket; see
    /// [`MetLimits::subject`].
    pub subject: Range<usize>,
    /// The descriptor by which it is met, by its number in [`Request::descriptors`]; `None` where the
    /// request as a whole meets it.
    pub descriptor: Option<u16>,
    /// What its plan answered, where it has one.
    pub planned: PlanAnswer,
}

/// A limit that refuses a request because an identity is missing, or because its plan has nothing for
/// the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmetLimit {
    /// Its index in [`Policy::limits`].
    pub limit: usize,
    /// The descriptor by which it would be met; `None` where the request as a whole would meet it.
    pub descriptor: Option<u16>,
    /// What its plan answered; [`PlanAnswer::NotAsked`] where an identity is missing.
    pub planned: PlanAnswer,
}

/// The limits that a request meets.
#[derive(Clone, Copy, Debug)]
pub struct MetLimits<'s> {
    /// Each limit of the request as a whole once, in the order written; then those of each descriptor,
    /// in its turn. One limit may be met by several descriptors, in the same bucket or in others.
    pub met: &'s [Met],
    /// The limit that refuses the request because an identity is missing, the first of them if there
    /// are several. Then none is met.
    pub refused: Option<UnmetLimit>,
    /// The limits in shadow mode that would refuse the request for the same reason. They are not among
    /// those that are met.
    pub watching: &'s [UnmetLimit],
    text: &'s str,
}

// === impl Scratch ===

// By hand: it holds what clients sent.
impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Scratch {
    /// The limits that were matched last.
    pub fn meeting(&self) -> MetLimits<'_> {
        MetLimits {
            met: &self.met,
            refused: self.refusing.first().copied(),
            watching: &self.watching,
            text: &self.text,
        }
    }
}

// === impl Meeting ===

impl<'s> MetLimits<'s> {
    /// The name of the bucket, `policy/limit/ip:192.0.2.1`: printable ASCII, and the same on every
    /// instance.
    pub fn bucket(&self, met: &Met) -> &'s [u8] {
        self.text
            .get(met.bucket.clone())
            .unwrap_or_default()
            .as_bytes()
    }

    /// The key as people are shown it, `ip:192.0.2.1`: secrets only as a hash, foreign characters
    /// escaped.
    pub fn subject(&self, met: &Met) -> &'s str {
        self.text.get(met.subject.clone()).unwrap_or_default()
    }
}

// === impl Policy ===

impl Policy {
    /// The limits that `request` meets: those that the request as a whole meets, in the order written,
    /// then, one descriptor after the other, those that each of them meets.
    ///
    /// With [`Evaluate::First`](crate::Evaluate::First) each of these searches ends with the first enforced one. Where
    /// [`Missing`](crate::Missing) says so, a limit whose identity is absent is passed over, which does not end the
    /// search, or refuses the request. One in shadow mode refuses nothing, and is noted instead.
    /// What any of them replaces is left out in the end.
    pub fn meet<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        scratch: &'s mut Scratch,
    ) -> MetLimits<'s> {
        self.meet_with(request, rules, &[], scratch)
    }

    /// The same with what plans say: `tables` are those of the configuration's sources, by their
    /// numbers. Whoever a table does not know, or one that is absent, has what the limit says of such.
    pub fn meet_with<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        tables: &Tables,
        scratch: &'s mut Scratch,
    ) -> MetLimits<'s> {
        self.meet_told(request, rules, tables.into(), scratch)
    }

    /// The same for those who have marked a text of the request already.
    pub fn meet_told<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        told: PlanLookup<'_>,
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
            told,
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

    /// The names, in lower case, of the headers that any condition or key reads, so that doors
    /// need copy no others.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.matcher.header_names().iter().map(String::as_str)
    }

    /// Whether any condition or key looks at the path, so that doors know when they need one.
    pub fn reads_path(&self) -> bool {
        self.matcher.reads().path
    }

    /// The same for the host.
    pub fn reads_host(&self) -> bool {
        self.matcher.reads().host
    }

    /// The same for the method.
    pub fn reads_method(&self) -> bool {
        self.matcher.reads().method
    }

    /// Which identities any key looks at.
    pub(crate) fn reads_who(&self) -> IdentityNeeds {
        self.matcher.reads().who
    }

    /// Whether any condition or key looks at the client's address, or a key falls back to it where
    /// an identity is absent. Method, host and path never are, in a request over HTTP.
    pub fn reads_address(&self) -> bool {
        self.matcher.reads_address()
    }
}
