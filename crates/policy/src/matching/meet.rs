//! Which limits a request meets, and in which buckets.

use super::condition;
use super::facts::{Facts, Spellings};
use super::key::KeyRules;
use super::trie::Walk;
use crate::client::Wanted;
use crate::{Evaluate, Limit, Missing, Policy, Request};
use std::fmt;
use std::ops::Range;
use tidegate_core::Mode;

/// Buffers, kept from one request to the next so that meeting allocates nothing once they have
/// grown. One may serve several policies, one after the other.
#[derive(Default)]
pub struct Scratch {
    spellings: Spellings,
    walk: Walk,
    met: Vec<Met>,
    text: String,
}

/// A limit that a request meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Its index in [`Policy::limits`].
    pub limit: usize,
    /// Where the name of its bucket stands; see [`Meeting::bucket`].
    pub bucket: Range<usize>,
    /// Where its key stands; see [`Meeting::subject`].
    pub subject: Range<usize>,
}

/// The limits that a request meets.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'s> {
    /// Each limit once, in the order written.
    pub met: &'s [Met],
    /// The limit that refuses the request because an identity is missing. Then none is met.
    pub refused: Option<usize>,
    text: &'s str,
}

// === impl Scratch ===

// By hand: it holds what clients sent.
impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

// === impl Meeting ===

impl<'s> Meeting<'s> {
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
    /// The limits that `request` meets.
    ///
    /// With [`Evaluate::First`] the search ends with the first enforced one. Where [`Missing`] says
    /// so, a limit whose identity is absent is passed over, which does not end the search, or
    /// refuses the request. One that only watches refuses nothing, and is passed over too.
    pub fn meet<'s>(
        &self,
        request: &Request<'_>,
        rules: &KeyRules,
        scratch: &'s mut Scratch,
    ) -> Meeting<'s> {
        let Scratch {
            spellings,
            walk,
            met,
            text,
        } = scratch;
        met.clear();
        text.clear();
        let mut refused = None;
        let mut settled = None;
        let facts = Facts::of(request, self.matcher.reads(), spellings);
        for candidate in self.matcher.candidates(facts.path, walk) {
            let (Some(limit), Some(key)) = (
                self.limits.get(candidate.limit),
                self.matcher.key(candidate.limit),
            ) else {
                continue;
            };
            let condition = limit.conditions.get(candidate.condition);
            if settled == Some(candidate.limit)
                || condition.is_some_and(|it| !condition::holds(it, &facts))
            {
                continue;
            }
            settled = Some(candidate.limit);
            let start = text.len();
            if let Some(subject) = key.write(&facts, rules, text) {
                met.push(Met {
                    limit: candidate.limit,
                    bucket: start..text.len(),
                    subject: subject..text.len(),
                });
                if self.evaluate == Evaluate::First && limit.mode == Mode::Enforce {
                    break;
                }
            } else {
                text.truncate(start);
                if refuses(limit) {
                    met.clear();
                    refused = Some(candidate.limit);
                    break;
                }
            }
        }
        Meeting { met, refused, text }
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
    pub(crate) fn reads_who(&self) -> Wanted {
        self.matcher.reads().who
    }

    /// Whether any condition or key looks at the client's address, or a key falls back to it where
    /// an identity is absent. Method, host and path never are, in a request over HTTP.
    pub fn reads_address(&self) -> bool {
        self.matcher.reads_address()
    }
}

/// Whether a limit refuses a request whose identity is absent.
fn refuses(limit: &Limit) -> bool {
    limit.missing == Missing::Refuse && limit.mode == Mode::Enforce
}
