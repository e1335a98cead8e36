//! The engine over packed values, one request at a time.

use crate::any_op::row::exact;
use crate::record::{self, Record};
use crate::request::{RedisKey, RequestOp, SlotAsks};
use crate::script::record_id;
use std::collections::BTreeMap;
use tidegate_core::{Ask, Bucket, BucketState, Outcome, Quota, Reply, Timestamp, step};

/// The expected contents of Redis.
#[derive(Default)]
pub(super) struct Reference {
    values: BTreeMap<RedisKey, Vec<u8>>,
}

/// A bucket during a decision.
struct HeldBucket {
    key: usize,
    quota: Quota,
    touched: bool,
}

impl Reference {
    pub(super) fn value(&self, key: &RedisKey) -> Option<&Vec<u8>> {
        self.values.get(key)
    }

    pub(super) fn bucket(&self, key: &RedisKey, quota: &Quota, now: Timestamp) -> Bucket {
        let found = self.value(key).map(|value| record::find(value, quota, now));
        let mut bucket = found
            .and_then(|found| found.expect("a valid record"))
            .unwrap_or_else(|| Bucket::new(quota));
        bucket.clamp_to_now(quota, now);
        bucket
    }

    pub(super) fn decide(&mut self, request: &SlotAsks, now: Timestamp) -> Reply {
        let mut held: Vec<HeldBucket> = Vec::new();
        let mut buckets = Vec::new();
        let mut places = Vec::new();
        for ask in &request.asks {
            let key = usize::from(ask.key);
            let same = |held: &HeldBucket| held.key == key && held.quota.id() == ask.quota.id();
            let place = held.iter().position(same).unwrap_or(held.len());
            if place == held.len() {
                let value = self.values.get(&request.keys[key]);
                let found = value.and_then(|value| {
                    record::find(value, &ask.quota, now).expect("a valid record")
                });
                let mut bucket = found.unwrap_or_else(|| Bucket::new(&ask.quota));
                held.push(HeldBucket {
                    key,
                    quota: ask.quota,
                    touched: bucket.is_beyond_reach(&ask.quota, now),
                });
                bucket.clamp_to_now(&ask.quota, now);
                buckets.push(bucket);
            }
            places.push(place);
        }
        let asks: Vec<Ask<'_>> = request.asks.iter().filter_map(as_ask).collect();
        let reply = if asks.len() == request.asks.len() {
            let reply = step::decide(&asks, &places, &mut buckets, now);
            for (i, place) in places.iter().enumerate() {
                held[*place].touched |= reply.applied.contains(i);
            }
            reply
        } else {
            let reading = buckets[0].reading(&held[0].quota, now);
            buckets[0] = Bucket::new(&held[0].quota);
            held[0].touched = true;
            let outcome = Outcome::of(tidegate_core::Wait::NONE, reading);
            Reply::unchanged(now, true, [outcome].into_iter().collect())
        };
        for (n, key) in request.keys.iter().enumerate() {
            let written: Vec<(&Quota, &Bucket)> = held
                .iter()
                .zip(&buckets)
                .filter(|(held, _)| held.key == n && held.touched)
                .map(|(held, bucket)| (&held.quota, bucket))
                .collect();
            if !written.is_empty() {
                let old = self.values.remove(key);
                if let Some(value) = rewrite(old.as_deref(), &written, now) {
                    self.values.insert(key.clone(), value);
                }
            }
        }
        reply
    }
}

fn as_ask(ask: &crate::request::OwnedAsk) -> Option<Ask<'_>> {
    let RequestOp::Engine(op) = ask.op else {
        return None;
    };
    Some(Ask {
        bucket: b"",
        scope: 0,
        quota: &ask.quota,
        op: exact(op, &ask.quota),
        limit: ask.limit,
        mode: ask.mode,
    })
}

/// Returns the value after a write: records in their order, without expired ones, new ones last.
fn rewrite(old: Option<&[u8]>, written: &[(&Quota, &Bucket)], now: Timestamp) -> Option<Vec<u8>> {
    let mut value = record::begin();
    let empty = value.len();
    let mut put = Vec::new();
    let push = |value: &mut Vec<u8>, quota: &Quota, bucket: &Bucket| {
        if bucket.expires_us(quota) > now.as_micros() {
            record::push(value, bucket, quota);
        }
    };
    let old = old.unwrap_or(&[1]);
    let mut rest = &old[1..];
    for it in record::records(old) {
        let it: Record<'_> = it.expect("a valid record");
        let (bytes, after) = rest.split_at(it.len());
        rest = after;
        match written.iter().find(|(quota, _)| record_id(quota) == it.id) {
            Some((quota, bucket)) => {
                push(&mut value, quota, bucket);
                put.push(it.id);
            }
            None if it.fresh_us > now.as_micros() => value.extend_from_slice(bytes),
            None => {}
        }
    }
    for (quota, bucket) in written {
        if !put.contains(&record_id(quota)) {
            push(&mut value, quota, bucket);
        }
    }
    (value.len() > empty).then_some(value)
}
