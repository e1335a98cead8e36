//! Candidates: one trait, and their list.

use crate::subjects;
use crate::workload::{Keys, Quota};

/// A limiter with one quota and its keys.
pub(crate) trait Subject: Send + Sync {
    /// Takes one unit for key number `at`; returns true if it passed. The complete result of the
    /// candidate is consumed (`black_box`), not only this bit.
    fn decide(&self, keys: &Keys, at: usize) -> bool;

    /// Makes the first call for a key. A candidate that can tell also returns `false` if the key
    /// got no separate bucket.
    fn meet(&self, keys: &Keys, at: usize) -> bool {
        self.decide(keys, at)
    }

    /// Decides for each key of `order` in turn; returns how many passed.
    ///
    /// One call through `dyn Subject` makes many decisions, which are compiled for each candidate,
    /// as in a program that uses it.
    fn visit(&self, keys: &Keys, order: &[u32]) -> u64 {
        let mut passed = 0;
        for &at in order {
            passed += u64::from(self.decide(keys, at as usize));
        }
        passed
    }
}

/// Makes a subject for this many keys.
pub(crate) type Build = fn(usize, Quota) -> anyhow::Result<Box<dyn Subject>>;

/// A candidate's name in the table, and its constructor.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) build: Build,
}

/// The rival, which ratios refer to.
pub(crate) const RIVAL: &str = "governor";

/// Returns all candidates for single decisions.
pub(crate) fn deciders() -> Vec<Candidate> {
    vec![
        Candidate {
            name: RIVAL,
            build: subjects::governor::build,
        },
        Candidate {
            name: "throttlecrab",
            build: subjects::throttlecrab::build,
        },
        Candidate {
            name: "limitador",
            build: subjects::limitador::build,
        },
        Candidate {
            name: "floor",
            build: subjects::floor::build,
        },
        #[cfg(feature = "tidegate")]
        Candidate {
            name: "tidegate",
            build: subjects::tidegate::build_one,
        },
    ]
}

/// The single decision that decisions over several buckets are compared with.
pub(crate) const ONE_BUCKET: &str = "one-bucket";

/// Returns all candidates for several buckets: only Tidegate supports them.
pub(crate) fn steppers() -> Vec<Candidate> {
    vec![
        #[cfg(feature = "tidegate")]
        Candidate {
            name: ONE_BUCKET,
            build: subjects::tidegate::build_one,
        },
        #[cfg(feature = "tidegate")]
        Candidate {
            name: "three-names",
            build: subjects::tidegate::build_three_names,
        },
        #[cfg(feature = "tidegate")]
        Candidate {
            name: "three-bands",
            build: subjects::tidegate::build_three_bands,
        },
    ]
}
