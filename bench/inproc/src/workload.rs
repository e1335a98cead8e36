//! Rows, quotas, keys and the order of their use.

/// The number of calls before the order repeats.
const ORDER_LEN: usize = 1 << 21;

/// A quota in terms of every candidate.
#[derive(Clone, Copy)]
pub(crate) struct Quota {
    pub(crate) amount: u32,
    pub(crate) period_s: u32,
    pub(crate) burst: u32,
}

/// Every call passes and writes, on one key for all calls.
const WIDE: Quota = Quota {
    amount: 7,
    period_s: 1,
    burst: 4_000_000_000,
};

/// Every call passes and writes, and a used key stays in use for the whole run: a unit refills in
/// 86 s. (A full bucket may be dropped, and then the row would measure insertion.) No key of these
/// rows gets more calls than the burst.
const LASTING: Quota = Quota {
    amount: 7,
    period_s: 600,
    burst: 7_000_000,
};

/// As [`LASTING`], for rows where one key takes a fourteenth of all calls: a wider burst, and units
/// that refill in 14 s.
const LASTING_WIDE: Quota = Quota {
    amount: 7,
    period_s: 100,
    burst: 40_000_000,
};

/// Nothing passes after the first call.
const SHUT: Quota = Quota {
    amount: 1,
    period_s: 3_600,
    burst: 1,
};

/// The frequency of each key.
#[derive(Clone, Copy)]
pub(crate) enum Popularity {
    /// All keys alike.
    Uniform,
    /// The k-th key in proportion to 1 / k.
    Zipf,
}

/// The result that every timed call of a row must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Deny,
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) keys: usize,
    pub(crate) popularity: Popularity,
    pub(crate) quota: Quota,
    pub(crate) verdict: Verdict,
}

impl Row {
    const fn allow(id: &'static str, title: &'static str, keys: usize) -> Self {
        Self {
            id,
            title,
            keys,
            popularity: Popularity::Uniform,
            quota: if keys == 1 { WIDE } else { LASTING },
            verdict: Verdict::Allow,
        }
    }
}

/// Single decisions.
pub(crate) const DECISIONS: &[Row] = &[
    Row::allow("hot-allow", "one key, every call passes and writes", 1),
    Row {
        quota: SHUT,
        verdict: Verdict::Deny,
        ..Row::allow("hot-deny", "one key, every call is refused", 1)
    },
    Row::allow("keys-10k", "10 000 keys, uniform", 10_000),
    Row::allow("keys-1m", "1 000 000 keys, uniform", MANY_KEYS),
    Row {
        popularity: Popularity::Zipf,
        quota: LASTING_WIDE,
        ..Row::allow("keys-1m-zipf", "1 000 000 keys, Zipf(1)", MANY_KEYS)
    },
];

/// Decisions over several buckets, all or nothing.
pub(crate) const STEPS: &[Row] = &[
    Row::allow("step-hot", "all or nothing: the same buckets each time", 1),
    Row::allow(
        "step-10k",
        "all or nothing: 10 000 requesters, uniform",
        10_000,
    ),
    Row::allow(
        "step-1m",
        "all or nothing: 1 000 000 requesters, uniform",
        MANY_KEYS,
    ),
];

/// The number of keys in the largest rows and for the bytes per key.
pub(crate) const MANY_KEYS: usize = 1_000_000;

/// The quota of the bytes per key: all keys stay.
pub(crate) const LASTING_QUOTA: Quota = LASTING;

/// Keys of 22 bytes, made before anything is timed.
pub(crate) struct Keys {
    pub(crate) names: Vec<String>,
    /// Two more names per client, for several buckets.
    #[cfg_attr(
        not(feature = "tidegate"),
        expect(dead_code, reason = "only Tidegate makes steps over several buckets")
    )]
    pub(crate) companions: [Vec<String>; 2],
}

impl Keys {
    /// `count` keys, without companions.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            names: names("user", count),
            companions: [Vec::new(), Vec::new()],
        }
    }

    /// `count` keys, each with two companions.
    pub(crate) fn with_companions(count: usize) -> Self {
        Self {
            companions: [names("addr", count), names("path", count)],
            ..Self::new(count)
        }
    }
}

/// Returns names with shuffled numbers, so that neighbours in memory are not neighbours in name.
fn names(kind: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|i| format!("tenant-7:{kind}-{:08}", i * 2_654_435_761 % 100_000_000))
        .collect()
}

/// Returns the order in which a thread uses the keys of `row`; each thread has its own `seed`.
pub(crate) fn order(row: &Row, seed: u64) -> Vec<u32> {
    let mut random = SplitMix(seed);
    match row.popularity {
        Popularity::Uniform => (0..ORDER_LEN)
            .map(|_| index(random.unit() * row.keys as f64, row.keys))
            .collect(),
        Popularity::Zipf => {
            let mut total = 0.0;
            let shares: Vec<f64> = (1..=row.keys)
                .map(|rank| {
                    total += 1.0 / rank as f64;
                    total
                })
                .collect();
            (0..ORDER_LEN)
                .map(|_| {
                    let drawn = random.unit() * total;
                    index(
                        shares.partition_point(|&share| share < drawn) as f64,
                        row.keys,
                    )
                })
                .collect()
        }
    }
}

/// `at` as an index below `keys`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rows have at most a million keys"
)]
fn index(at: f64, keys: usize) -> u32 {
    (at as u32).min(keys as u32 - 1)
}

/// The splitmix64 generator: small, and good enough to shuffle visits.
struct SplitMix(u64);

impl SplitMix {
    /// A number in `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_22_bytes_long() {
        let mut names = names("user", 100_000);
        assert!(names.iter().all(|name| name.len() == 22));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 100_000);
    }

    #[test]
    fn zipf_visits_the_first_key_twice_as_often_as_the_second() {
        let row = Row {
            popularity: Popularity::Zipf,
            ..Row::allow("", "", 1_000)
        };
        let order = order(&row, 1);
        let visits = |key| order.iter().filter(|&&at| at == key).count() as f64;
        assert!((visits(0) / visits(1) - 2.0).abs() < 0.05);
    }
}
