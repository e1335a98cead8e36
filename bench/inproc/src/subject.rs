//! What is measured: one trait, and the list of candidates.

use crate::subjects;
use crate::workload::{Keys, Quota};

/// A limiter with one quota, ready to be asked.
pub(crate) trait Subject: Send + Sync {
    /// Asks for one unit on behalf of key number `at`, and says whether it passed. The whole answer
    /// that the candidate gives is used up (`black_box`), not only this bit.
    fn decide(&self, keys: &Keys, at: usize) -> bool;

    /// The first question for a key. A candidate that can tell also says `false` where the key did
    /// not get a bucket of its own.
    fn meet(&self, keys: &Keys, at: usize) -> bool {
        self.decide(keys, at)
    }

    /// Decides for each key of `order` in turn and counts what passed.
    ///
    /// Calls through `dyn Subject` come in here, once for many decisions: the decisions themselves
    /// are compiled for each candidate, as in a program that uses it.
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

/// A name in the table, and how to make what it names.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) build: Build,
}

/// The rival: ratios are to it.
pub(crate) const RIVAL: &str = "governor";

/// Everything that makes one decision.
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

/// The single decision that steps are compared with.
pub(crate) const ONE_BUCKET: &str = "one-bucket";

/// Everything that makes a step over several buckets: Tidegate alone can.
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
