//! Reservations: an estimate is charged, and settled by the actual usage.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well, and a crowd is many tasks"
)]

/// A store that does not answer, or only in part.
mod away;
/// Ids: their contents, and protection against forgery.
mod ids;
/// Limits in code.
mod in_code;
/// Any order of any operations, compared with the model.
mod model;
/// A real Redis, two instances, and a network that fails.
mod redis;
/// The effects of settling, case by case.
mod settling;
/// Stores that schedules run over.
mod stores;
/// Several units, case by case.
mod units;
/// Several units in any order of any operations, compared with a model.
mod units_model;
/// Shares of a band that a commit reaches.
mod warned;

use std::time::Duration;
use tidegate::{
    Config, Limiter, ManualClock, MemoryStore, Request, SettleState, SettledReservation, Store,
};
use tidegate_core::{Clock, Timestamp};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Returns a policy that accepts reservations, with these limits.
pub(crate) fn policy(limits: &str) -> String {
    format!(
        "policies: [{{ name: llm, reserve: {{ default_ttl: 1min, max_ttl: 10min }}, limits: [{limits}] }}]"
    )
}

pub(crate) fn config(limits: &str) -> Config {
    Config::from_yaml(&policy(limits)).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_millis(1_700_000_000_000))
}

/// A limiter in memory with a manual clock.
pub(crate) struct ManualLimiter {
    pub(crate) limiter: Limiter<MemoryStore<ManualClock>>,
    pub(crate) clock: ManualClock,
}

impl ManualLimiter {
    pub(crate) fn new(limits: &str) -> Self {
        let clock = clock();
        let builder = Limiter::builder().config(config(limits));
        let limiter = builder.clock(clock.clone()).build();
        Self {
            limiter: limiter.unwrap_or_else(|error| panic!("{error}")),
            clock,
        }
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance_micros(micros(time));
    }

    /// Reserves for a minute, and returns the id.
    pub(crate) async fn reserve(&self, estimate: u64) -> String {
        reserve(&self.limiter, &Request::new().cost(estimate)).await
    }

    pub(crate) async fn commit(&self, id: &str, actual: u64) -> SettleState {
        state(&self.limiter.commit(id, actual).await.unwrap())
    }

    pub(crate) fn remaining(&self) -> u64 {
        let looked = self.limiter.check_now(&Request::new().cost(0)).unwrap();
        looked.binding().unwrap().remaining()
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

pub(crate) async fn reserve<S: Store>(limiter: &Limiter<S>, request: &Request<'_>) -> String {
    let reservation = limiter.reserve(request, MINUTE).await.unwrap();
    reservation.id().expect("there is room").to_owned()
}

pub(crate) fn state(settled: &SettledReservation) -> SettleState {
    settled.state()
}

/// Returns the remaining units for the subject of `request`.
pub(crate) async fn remaining<S: Store>(limiter: &Limiter<S>, request: &Request<'_>) -> u64 {
    let looked = limiter.check(&request.cost(0)).await.unwrap();
    looked.binding().unwrap().remaining()
}

pub(crate) fn now_us(clock: &ManualClock) -> u64 {
    clock.now().as_micros()
}
