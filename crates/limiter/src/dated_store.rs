//! The windows of calendars, for a store that knows no time zone.
//!
//! Quotas of months and local days leave the configuration without instants. Here they get the starts around
//! the store's clock, just before the store is called: those of the last call, as long as the store's clock is in
//! one of their windows. If it is in none, nothing was decided, and the request is sent again with the windows
//! around the instant that the store replied.

use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{
    Ask, Atomicity, Inspection, Quota, Reply, SharedState, Store, StoreError, Timestamp,
};
use tidegate_memory::SystemClock;
use tidegate_policy::calendar::{kept_starts, starts_around, with_starts_around};

/// The number of times that a request is sent. The second has the windows around the store's own instant, so that
/// a third is needed only if two windows end while the second is on its way.
const TRIES_MAX: usize = 3;

/// A store whose asks get the windows of their calendars. For all other asks it is the store itself.
#[derive(Debug)]
pub(crate) struct DatedStore<S>(S);

/// The quotas of a request, with starts.
type DatedQuotas = SmallVec<[Quota; 2]>;

impl<S> DatedStore<S> {
    pub(crate) fn new(store: S) -> Self {
        Self(store)
    }

    /// Returns the store itself.
    #[inline]
    pub(crate) fn inner(&self) -> &S {
        &self.0
    }
}

impl<S: Store> DatedStore<S> {
    /// Returns the store's instant, or this machine's.
    fn present(&self) -> Timestamp {
        self.0.present().unwrap_or_else(SystemClock::wall)
    }

    /// Returns the quotas that need starts, with those of late or around the present.
    #[inline]
    fn dated_quotas(&self, asks: &[Ask<'_>]) -> DatedQuotas {
        let mut quotas = DatedQuotas::new();
        for ask in asks {
            if ask.quota.needs_starts() {
                quotas.push(*ask.quota);
                if let Some(quota) = quotas.last_mut() {
                    self.date(quota);
                }
            }
        }
        quotas
    }

    /// Gives a quota the starts of late, or around the present.
    #[inline]
    fn date(&self, quota: &mut Quota) {
        match quota.calendar().and_then(kept_starts) {
            Some(starts) => quota.set_starts(&starts),
            None => *quota = with_starts_around(quota, self.present()),
        }
    }

    /// Returns a quota with starts.
    fn dated(&self, quota: &Quota) -> Quota {
        let mut quota = *quota;
        if quota.needs_starts() {
            self.date(&mut quota);
        }
        quota
    }

    async fn decide_dated(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        for _ in 0..TRIES_MAX {
            let quotas = self.dated_quotas(asks);
            let mut dated = SmallVec::from_slice(asks);
            date_all(&mut dated, &quotas);
            let reply = self.0.decide(&dated).await?;
            follow(&quotas, reply.at);
            if !reply.outside || is_fixed(asks, reply.at) {
                return Ok(reply);
            }
        }
        Err(StoreError::transient(
            "the store's clock was outside the windows of the calendar each time",
        ))
    }

    // One variable for the reply, which is large: it is written to where the caller keeps it.
    #[inline(never)]
    fn decide_dated_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        let mut tries = TRIES_MAX;
        let mut reply;
        loop {
            tries = tries.saturating_sub(1);
            if let [ask] = asks {
                let mut quota = *ask.quota;
                self.date(&mut quota);
                let dated = Ask {
                    quota: &quota,
                    ..*ask
                };
                reply = self.0.decide_at_once(&[dated]);
                follow(
                    std::slice::from_ref(&quota),
                    reply.as_ref().map_or(NEVER, |reply| reply.at),
                );
            } else {
                let quotas = self.dated_quotas(asks);
                let mut dated = SmallVec::from_slice(asks);
                date_all(&mut dated, &quotas);
                reply = self.0.decide_at_once(&dated);
                follow(&quotas, reply.as_ref().map_or(NEVER, |reply| reply.at));
            }
            let is_outside = reply.as_ref().is_some_and(|reply| reply.outside);
            if !is_outside || tries == 0 || is_fixed_at(asks, reply.as_ref()) {
                break;
            }
        }
        reply
    }
}

/// The instant of no reply.
const NEVER: Timestamp = Timestamp::from_micros(0);

/// Gives the asks that need starts these quotas, one for each.
#[inline]
fn date_all<'a>(asks: &mut SmallVec<[Ask<'a>; 4]>, quotas: &'a [Quota]) {
    let needing = asks.iter_mut().filter(|ask| ask.quota.needs_starts());
    for (ask, quota) in needing.zip(quotas) {
        ask.quota = quota;
    }
}

/// Keeps the starts around the instant of a reply for the next request, if it is in another window than the one that
/// the starts of this request are around.
#[inline]
fn follow(quotas: &[Quota], at: Timestamp) {
    for quota in quotas {
        let [_, start, end, _] = quota.starts();
        if !(start..end).contains(&at.as_micros())
            && at != NEVER
            && let Some(code) = quota.calendar()
        {
            starts_around(code, at.as_micros() / 1_000);
        }
    }
}

/// Returns true if the windows that a request came with do not contain the instant of its reply.
#[cold]
fn is_fixed_at(asks: &[Ask<'_>], reply: Option<&Reply>) -> bool {
    reply.is_some_and(|reply| is_fixed(asks, reply.at))
}

/// Returns true if a quota came with starts and knows no window at an instant: then other starts do not help.
fn is_fixed(asks: &[Ask<'_>], at: Timestamp) -> bool {
    let is_fixed = |ask: &Ask<'_>| !ask.quota.needs_starts() && ask.quota.is_outside(at);
    asks.iter().any(is_fixed)
}

/// Removes the asks for windows that are over: to settle them changes nothing. Returns true if there were any.
pub(crate) fn drop_closed(asks: &mut SmallVec<[Ask<'_>; 4]>, at: Timestamp) -> bool {
    let before = asks.len();
    asks.retain(|ask| !ask.quota.is_outside(at));
    asks.len() < before
}

/// Returns true if a request needs starts.
#[inline]
fn needs_starts(asks: &[Ask<'_>]) -> bool {
    asks.iter().any(|ask| ask.quota.needs_starts())
}

impl<S: Store> Store for DatedStore<S> {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        if needs_starts(asks) {
            self.decide_dated(asks).await
        } else {
            self.0.decide(asks).await
        }
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        let quota = self.dated(quota);
        self.0.inspect(bucket, &quota).await
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        let quota = self.dated(quota);
        self.0.reset(bucket, &quota).await
    }

    fn timeout(&self) -> Option<Duration> {
        self.0.timeout()
    }

    fn can_fail(&self) -> bool {
        self.0.can_fail()
    }

    fn holds_permits(&self) -> bool {
        self.0.holds_permits()
    }

    fn atomicity(&self) -> Atomicity {
        self.0.atomicity()
    }

    fn refund(&self, asks: &[Ask<'_>]) {
        let quotas = self.dated_quotas(asks);
        let mut dated = SmallVec::from_slice(asks);
        date_all(&mut dated, &quotas);
        self.0.refund(&dated);
    }

    fn has_machine_clock(&self) -> bool {
        self.0.has_machine_clock()
    }

    fn present(&self) -> Option<Timestamp> {
        self.0.present()
    }

    #[inline]
    fn decide_at_once(&self, asks: &[Ask<'_>]) -> Option<Reply> {
        if needs_starts(asks) {
            self.decide_dated_at_once(asks)
        } else {
            self.0.decide_at_once(asks)
        }
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        self.0.shared_state()
    }
}
