//! From what the simple script replied to everybody's answer.

use super::entries::{Entries, Entry};
use crate::deny::Refused;
use crate::error::CallError;
use crate::lane::{Answer, Askers};
use crate::record;
use crate::shared::Shared;
use redis::Value;
use tidegate_core::{
    AppliedAsks, Bucket, Meter, Op, Outcome, Outcomes, Reading, Reply, StoreError, StoreErrorKind,
    Timestamp, Wait, step::decide_one,
};
use tokio::time::Instant;

/// What the script replied.
struct Replied<'a> {
    at: Timestamp,
    /// How many requests it let pass.
    passed: u64,
    /// What was in each key before.
    values: &'a [Value],
}

impl<'a> Replied<'a> {
    fn parse(reply: &'a Value, keys: usize) -> Result<Self, CallError> {
        if let Value::Array(parts) = reply
            && let [values @ .., Value::Int(at), Value::Int(passed)] = parts.as_slice()
            && let (Ok(at), Ok(passed)) = (u64::try_from(*at), u64::try_from(*passed))
            && values.len() == keys
        {
            return Ok(Self {
                at: Timestamp::from_micros(at),
                passed,
                values,
            });
        }
        Err(CallError::malformed(
            "the script's reply is of another form",
        ))
    }
}

/// Finds the answers of everybody in `entries`; sent at `sent`.
pub(crate) fn decide(
    shared: &Shared,
    entries: &Entries,
    reply: Result<Value, CallError>,
    (askers, sent): (&mut Askers, Instant),
) {
    let mut decided: Vec<(usize, Result<Decided, StoreError>)> = Vec::with_capacity(entries.len());
    let told = reply.and_then(|reply| {
        let replied = Replied::parse(&reply, entries.len())?;
        for (entry, value) in entries.iter().zip(replied.values) {
            decide_key((shared, askers), (entry, value), (replied.at, sent), &mut decided);
        }
        let is_pass = |it: &&(usize, Result<Decided, StoreError>)| {
            matches!(&it.1, Ok(decided) if decided.outcome.is_allowed())
        };
        let passed = decided.iter().filter(is_pass).count();
        if u64::try_from(passed) == Ok(replied.passed) {
            Ok(replied.at)
        } else {
            // What the script did stands, and nobody knows for whom.
            Err(CallError::malformed("the script and the engine disagree"))
        }
    });
    match told {
        Ok(at) => {
            for (place, decided) in decided {
                askers.tell(place, decided.map(|decided| decided.answer(at)));
            }
        }
        Err(error) => {
            for (place, _) in entries.iter().flat_map(|entry| &entry.askers) {
                askers.tell(*place, Err(error.clone().into()));
            }
        }
    }
}

/// Decides what was asked of one key, in order, on what was in it: the engine's own arithmetic.
fn decide_key(
    (shared, askers): (&Shared, &Askers),
    (entry, value): (&Entry, &Value),
    (at, sent): (Timestamp, Instant),
    decided: &mut Vec<(usize, Result<Decided, StoreError>)>,
) {
    let Ok(mut bucket) = record::bucket(value, &entry.quota, at) else {
        let failed = entry
            .askers
            .iter()
            .map(|(place, _)| (*place, Err(corrupt())));
        decided.extend(failed);
        return;
    };
    let mut refused = None;
    if let Bucket::Tokens(tokens) = &mut bucket {
        for (place, cost) in &entry.askers {
            let before = askers
                .wants_before(*place)
                .then(|| tokens.reading(&entry.quota, at));
            let outcome = decide_one(&entry.quota, tokens, Op::Take(*cost), at);
            if !outcome.is_allowed() {
                refused = Some((*cost, outcome));
            }
            decided.push((*place, Ok(Decided { outcome, before })));
        }
    }
    let Some((cost, outcome)) = refused else {
        shared.deny.disturb(&entry.key, &entry.quota, sent);
        return;
    };
    let refused = Refused {
        key: &entry.key,
        quota: &entry.quota,
        cost,
        outcome,
        bucket: &bucket,
    };
    shared.deny.remember(&refused, at, sent);
}

/// What became of one request.
struct Decided {
    outcome: Outcome,
    /// What the bucket read before, where that was wanted.
    before: Option<Reading>,
}

impl Decided {
    fn answer(self, at: Timestamp) -> Answer {
        let passed = self.outcome.is_allowed();
        let mut reply = Reply::new(at, passed);
        reply.outcomes.push(self.outcome);
        // This script only takes, at least one unit.
        reply.applied = AppliedAsks::first(usize::from(passed));
        let before = self.before.map(|reading| Outcome::of(Wait::NONE, reading));
        Answer {
            reply,
            before: before.map(|before| Outcomes::from_iter([before])),
        }
    }
}

fn corrupt() -> StoreError {
    StoreError::permanent("what Redis keeps under the bucket's key is not ours, or broken")
        .with_kind(StoreErrorKind::Corrupt)
}
