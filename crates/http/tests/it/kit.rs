//! Limiters, and their responses as text.

use http::{HeaderMap, Response};
use std::fmt::Write as _;
use tidegate::{
    Decision, Limiter, ManualClock, MemoryStore, Request, Store, StoreError, Timestamp,
};
use tidegate_core::{Ask, Inspection, Quota, Reply};
use tidegate_testkit::laws::block_on;

/// The time of all tests: 2023-11-14T22:13:20.250Z.
pub(crate) const AT: Timestamp = Timestamp::from_millis(1_700_000_000_250);

/// A store that never replies.
#[derive(Debug)]
pub(crate) struct UnreachableStore;

impl Store for UnreachableStore {
    async fn decide(&self, _: &[Ask<'_>]) -> Result<Reply, StoreError> {
        Err(StoreError::transient("away"))
    }

    async fn inspect(&self, _: &[u8], _: &Quota) -> Result<Option<Inspection>, StoreError> {
        Err(StoreError::transient("away"))
    }

    async fn reset(&self, _: &[u8], _: &Quota) -> Result<bool, StoreError> {
        Err(StoreError::transient("away"))
    }
}

pub(crate) fn limiter(yaml: &str) -> Limiter<MemoryStore<ManualClock>> {
    let builder = Limiter::builder().yaml(yaml);
    let builder = builder.unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    builder.clock(ManualClock::at(AT)).build().unwrap()
}

/// Returns the response of the same limits while the store is down.
pub(crate) fn without_store(yaml: &str, request: &Request<'_>) -> Decision {
    let builder = Limiter::builder().yaml(yaml).unwrap();
    let limiter = builder
        .clock(ManualClock::at(AT))
        .build_with(UnreachableStore);
    block_on(limiter.unwrap().check(request)).unwrap()
}

/// Returns headers sorted by name, as on the wire.
pub(crate) fn head(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Returns a whole response as text.
pub(crate) fn whole(answer: &Response<Vec<u8>>) -> String {
    let mut text = String::new();
    let body = std::str::from_utf8(answer.body()).unwrap();
    write!(
        text,
        "{}\n{}\n\n{body}",
        answer.status(),
        head(answer.headers())
    )
    .unwrap();
    text
}
