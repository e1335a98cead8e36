//! The answers, from the reply of the script.
//!
//! The script returns the instant, the requests that it let pass, and the previous value of each key. The
//! engine decides the same requests again on the same states at the same instant: the remaining units,
//! the wait and the time of refill are the engine's.

use super::program::ScriptCall;
use super::row::exact;
use crate::failure::store_error;
use crate::layout::{self, Form, Rounding};
use crate::record::{self, CorruptRecord};
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use smallvec::SmallVec;
use tidegate_core::algorithm::FixedWindow;
use tidegate_core::{
    Ask, Bucket, BucketState, Inspection, Op, Outcome, Outcomes, Quota, Reply, StoreError,
    StoreErrorKind, Timestamp, step,
};
use tidegate_redis_client::CallError;
use tidegate_redis_client::protocol::Value;

/// Placeholder for a bucket that cannot be read. It is never reported.
const BLANK: Bucket = Bucket::Fixed(FixedWindow { start: 0, used: 0 });

/// The result of one request.
#[derive(Clone, Debug)]
pub(crate) struct ReplayedRequest {
    /// The reply. That of a [`RequestOp::Drop`] reads the previous state.
    pub(crate) reply: Reply,
    /// The answer of each bucket as it was before the request, where that was wanted: its reading, and
    /// the wait of the ask if nothing is charged.
    pub(crate) before: Option<Outcomes>,
}

/// Decides the requests of a call once more, in order.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    call: &'a ScriptCall,
    at: Timestamp,
    /// The script's verdict on each request, in order: `1`, `0`, `x` if a key holds a foreign value, or `o` if
    /// the instant is outside the windows of a quota.
    marks: std::slice::Iter<'a, u8>,
    values: &'a [Value],
    /// In the order of the call's places.
    buckets: Vec<Bucket>,
    /// The quota under which each was last used, and whether anything has been done to it. Kept only
    /// where that matters.
    quotas: Vec<u16>,
    touched: Vec<bool>,
    /// The values written under another quota than the last.
    written: Vec<Option<Value>>,
    /// The keys that are not ours.
    corrupt: SmallVec<[u16; 2]>,
    /// The places and quotas of the asks to come.
    asks: std::slice::Iter<'a, (u16, u16)>,
    /// True if the engine decided differently from the script.
    disagrees: bool,
    tracks: bool,
}

/// Decides all requests of a call again. `wants_before` selects, by number, those that also get the
/// readings before the charge.
#[cfg(test)]
pub(crate) fn answer(
    requests: &[&SlotAsks],
    call: &ScriptCall,
    reply: &Value,
    mut wants_before: impl FnMut(usize) -> bool,
) -> Result<Vec<Result<ReplayedRequest, StoreError>>, CallError> {
    let mut again = Replay::new(call, reply)?;
    let answers = requests.iter().enumerate();
    Ok(answers
        .map(|(nth, request)| again.next(request, wants_before(nth)))
        .collect())
}

/// Returns the previous state of the only bucket of a call's only request.
pub(crate) fn inspection(
    call: &ScriptCall,
    reply: &Value,
) -> Result<Option<Inspection>, StoreError> {
    let (at, _, values) = parse(call, reply).map_err(store_error)?;
    let (Some(value), Some(quota)) = (values.first(), call.quotas.first()) else {
        return Ok(None);
    };
    match call.find_in(0, value, quota, at) {
        Ok(found) => Ok(found.map(|bucket| Inspection { at, bucket })),
        Err(CorruptRecord) => Err(corrupt()),
    }
}

/// The instant, the verdicts, and the previous value of each key.
type ReplyParts<'a> = (Timestamp, &'a [u8], &'a [Value]);

/// Splits the reply of the script into its parts.
fn parse<'a>(call: &ScriptCall, reply: &'a Value) -> Result<ReplyParts<'a>, CallError> {
    if let Value::Array(parts) = reply
        && let [Value::Int(at), Value::BulkString(marks), values @ ..] = parts.as_slice()
        && let Ok(at) = u64::try_from(*at)
        && values.len() == call.keys.len()
    {
        return Ok((Timestamp::from_micros(at), marks, values));
    }
    Err(CallError::malformed(
        "the script returned an unexpected reply",
    ))
}

/// Returns the error for a key that holds a foreign or a broken value.
fn corrupt() -> StoreError {
    StoreError::permanent("the bucket's key holds a value that Tidegate did not write")
        .with_kind(StoreErrorKind::Corrupt)
}

impl<'a> Replay<'a> {
    /// Begins with what the script replied.
    pub(crate) fn new(call: &'a ScriptCall, reply: &'a Value) -> Result<Self, CallError> {
        let (at, marks, values) = parse(call, reply)?;
        let mut begun = Self {
            call,
            at,
            marks: marks.iter(),
            values,
            buckets: Vec::with_capacity(call.places.len()),
            quotas: Vec::new(),
            touched: Vec::new(),
            written: Vec::new(),
            corrupt: SmallVec::new(),
            asks: call.asks.iter(),
            disagrees: false,
            tracks: call.switches,
        };
        for place in &call.places {
            let value = begun.value(place.key);
            let (bucket, settled) = match begun.load(place.key, value, place.quota) {
                Ok(loaded) => loaded,
                Err(CorruptRecord) => {
                    begun.corrupt.push(place.key);
                    (BLANK, false)
                }
            };
            begun.buckets.push(bucket);
            if begun.tracks {
                begun.quotas.push(place.quota);
                begun.touched.push(settled);
                begun.written.push(None);
            }
        }
        Ok(begun)
    }

    /// Returns a quota of the call.
    fn quota(&self, number: u16) -> Option<&'a Quota> {
        self.call.quotas.get(usize::from(number))
    }

    /// Returns the previous value of a key.
    fn value(&self, key: u16) -> Option<&Value> {
        self.values.get(usize::from(key))
    }

    /// Returns the bucket in a key's value, clamped to the present instant if necessary, and whether it
    /// was.
    fn load(
        &self,
        key: u16,
        value: Option<&Value>,
        quota: u16,
    ) -> Result<(Bucket, bool), CorruptRecord> {
        let quota = self.quota(quota).ok_or(CorruptRecord)?;
        let value = value.unwrap_or(&Value::Nil);
        let found = self.call.find_in(key, value, quota, self.at)?;
        let mut bucket = found.unwrap_or_else(|| Bucket::new(quota));
        let is_beyond_reach = bucket.is_beyond_reach(quota, self.at);
        bucket.clamp_to_now(quota, self.at);
        if self.call.form(key) == Form::Window {
            Rounding::of(&mut bucket);
        }
        Ok((bucket, is_beyond_reach))
    }

    /// The instant at which everything was decided.
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// Decides the next request of the call. With `wants_before`, also returns the readings before the
    /// charge.
    pub(crate) fn next(
        &mut self,
        request: &SlotAsks,
        wants_before: bool,
    ) -> Result<ReplayedRequest, StoreError> {
        let places = self.next_places(request);
        let mark = self.marks.next().copied().unwrap_or_default();
        let is_corrupt = |place: &usize| {
            let place = self.call.places.get(*place);
            place.is_none_or(|place| self.corrupt.contains(&place.key))
        };
        if places.iter().any(is_corrupt) {
            return match mark {
                b'x' => Err(corrupt()),
                _ => Err(self.disagree()),
            };
        }
        let before = wants_before.then(|| self.readings(request, &places));
        let reply = self.decide(request, &places);
        let expected = match (reply.outside, reply.passed) {
            (true, _) => b'o',
            (false, true) => b'1',
            (false, false) => b'0',
        };
        if mark != expected || self.disagrees {
            return Err(self.disagree());
        }
        Ok(ReplayedRequest { reply, before })
    }

    /// Returns the current state of the bucket of the last decided request's `nth` ask.
    pub(crate) fn bucket(&self, request: &SlotAsks, nth: usize) -> Option<&Bucket> {
        let done = self.call.asks.len().checked_sub(self.asks.len())?;
        let first = done.checked_sub(request.asks.len())?;
        let (place, _) = self.call.asks.get(first.checked_add(nth)?)?;
        self.buckets.get(usize::from(*place))
    }

    /// The script's changes remain; from here on it is unknown for which request.
    fn disagree(&mut self) -> StoreError {
        self.disagrees = true;
        StoreError::permanent("the script and the engine disagree")
    }

    /// Returns the places of a request's asks, and switches buckets that it uses under another quota.
    fn next_places(&mut self, request: &SlotAsks) -> SmallVec<[usize; 4]> {
        let mut places = SmallVec::new();
        for _ in &request.asks {
            let (place, quota) = self.asks.next().copied().unwrap_or((u16::MAX, 0));
            if self.call.switches {
                self.switch(place, quota);
            }
            places.push(usize::from(place));
        }
        places
    }

    /// Reads a bucket under another quota than before, as if it had been written and read again.
    fn switch(&mut self, place: u16, quota: u16) {
        let at = usize::from(place);
        let Some(old) = self.quotas.get_mut(at) else {
            return;
        };
        let old = std::mem::replace(old, quota);
        if old == quota {
            return;
        }
        if self.switch_open(at, old, quota) {
            return;
        }
        if let (Some(true), Some(bucket), Some(old)) =
            (self.touched.get(at), self.buckets.get(at), self.quota(old))
            && let Some(written) = self.written.get_mut(at)
        {
            let mut value = record::begin();
            record::push(&mut value, bucket, old);
            *written = Some(Value::BulkString(value));
        }
        let Some(place) = self.call.places.get(at) else {
            return;
        };
        let written = self.written.get(at).cloned().flatten();
        let value = written.as_ref().or_else(|| self.value(place.key));
        // It was read before, so it can be read.
        let next = self.load(place.key, value, quota).unwrap_or((BLANK, false));
        if let (Some(bucket), Some(touched)) = (self.buckets.get_mut(at), self.touched.get_mut(at))
        {
            (*bucket, *touched) = next;
        }
    }

    /// [`switch`](Self::switch) for a bucket of the open layout that has been used; returns true if it
    /// was one.
    fn switch_open(&mut self, at: usize, old: u16, new: u16) -> bool {
        let is_open = self.form(at) != Form::Packed;
        if let (true, Some(true), Some(old), Some(new), Some(bucket)) = (
            is_open,
            self.touched.get(at),
            self.quota(old),
            self.quota(new),
            self.buckets.get_mut(at),
        ) {
            *bucket = layout::switched(bucket, old, new, self.at);
            return true;
        }
        false
    }

    /// The form of a place.
    fn form(&self, place: usize) -> Form {
        let place = self.call.places.get(place);
        place.map_or(Form::Packed, |place| self.call.form(place.key))
    }

    /// Returns the readings of a request's buckets as they are now, with the wait of each ask.
    fn readings(&self, request: &SlotAsks, places: &[usize]) -> Outcomes {
        let asks: SmallVec<[Ask<'_>; 4]> = request
            .asks
            .iter()
            .map(|ask| match ask.op {
                RequestOp::Engine(op) => ask_of(ask, op),
                RequestOp::Drop | RequestOp::Inspect => ask_of(ask, Op::Look),
            })
            .collect();
        let places_of_asks = asks.iter().zip(places).enumerate();
        places_of_asks
            .filter_map(|(i, (ask, place))| {
                let reading = self.buckets.get(*place)?.reading(ask.quota, self.at);
                let wait = step::wait_of(&asks, places, &self.buckets, i, self.at);
                Some(Outcome::of(wait, reading))
            })
            .collect()
    }

    /// Decides a request on the replayed buckets, as the script did.
    fn decide(&mut self, request: &SlotAsks, places: &[usize]) -> Reply {
        let mut asks: SmallVec<[Ask<'_>; 4]> = SmallVec::new();
        let mut gives_back = false;
        for (ask, place) in request.asks.iter().zip(places) {
            let RequestOp::Engine(mut op) = ask.op else {
                return self.forget(request, places);
            };
            if let (Op::GiveBack(receipt) | Op::Return { receipt, .. }, Some(bucket)) =
                (&mut op, self.buckets.get(*place))
            {
                let state = (bucket, &ask.quota);
                *receipt = layout::receipt(self.form(*place), state, *receipt, self.at);
                gives_back = true;
            }
            asks.push(ask_of(ask, op));
        }
        let mut reply = step::decide(&asks, places, &mut self.buckets, self.at);
        if self.call.is_open {
            self.round(places, &mut reply.outcomes);
        }
        if self.tracks {
            for (i, place) in places.iter().enumerate() {
                if let Some(touched) = self.touched.get_mut(*place) {
                    *touched |= reply.applied.contains(i);
                }
            }
        }
        if gives_back {
            self.renew(&asks, places);
        }
        reply
    }

    /// Windows that were opened begin as the open layout writes them down.
    fn round(&mut self, places: &[usize], outcomes: &mut Outcomes) {
        for place in places {
            if self.form(*place) != Form::Window {
                continue;
            }
            let Some(rounding) = self.buckets.get_mut(*place).map(Rounding::of) else {
                continue;
            };
            for (outcome, other) in outcomes.iter_mut().zip(places) {
                if other == place {
                    rounding.correct(outcome);
                }
            }
        }
    }

    /// Replaces buckets that refunds have filled up by new ones, as the next call would find them.
    fn renew(&mut self, asks: &[Ask<'_>], places: &[usize]) {
        for (ask, place) in asks.iter().zip(places) {
            if let (Op::GiveBack(_) | Op::Return { .. }, Some(bucket)) =
                (ask.op, self.buckets.get_mut(*place))
                && bucket.expires_us(ask.quota) <= self.at.as_micros()
            {
                *bucket = Bucket::new(ask.quota);
            }
        }
    }

    /// Replaces the buckets of a [`RequestOp::Drop`] by new ones. Reads the state of a
    /// [`RequestOp::Inspect`].
    fn forget(&mut self, request: &SlotAsks, places: &[usize]) -> Reply {
        let outcomes = self.readings(request, places);
        for (ask, place) in request.asks.iter().zip(places) {
            if let Some(bucket) = self.buckets.get_mut(*place) {
                *bucket = Bucket::new(&ask.quota);
            }
            if let Some(touched) = self.touched.get_mut(*place) {
                *touched = true;
            }
        }
        Reply::unchanged(self.at, true, outcomes)
    }
}

/// Returns `ask` as the engine decides it, carrying out `op`. The engine needs no name of the bucket.
fn ask_of(ask: &OwnedAsk, op: Op) -> Ask<'_> {
    Ask {
        bucket: &[],
        scope: 0,
        quota: &ask.quota,
        op: exact(op, &ask.quota),
        limit: ask.limit,
        mode: ask.mode,
    }
}
