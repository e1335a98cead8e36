//! The seals that close reservation ids, and those that may have closed one.
//!
//! | condition | the seal |
//! |---|---|
//! | `store.key_secret` is set | derived from it: the same for all instances with the secret |
//! | the store is shared | agreed on by the instances that share the store, and kept in it |
//! | the store is in memory | this process's own, like its buckets; a snapshot keeps both |
//!
//! An unreachable store cannot provide the agreed seal. Then this process closes ids with its own seal, which
//! no other instance can open; but charges made without the store cannot be settled by another instance
//! either.

use super::seal::{Seal, random};
use crate::backend::Backend;
use crate::rules::Rules;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{Store, StoreError, StoreErrorKind};
use tokio::time::Instant;

/// The interval at which the seal in the store is checked. The store keeps it only while instances check it,
/// and a failover may have lost it.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The interval after a failed check, or after an unknown id.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The seals of a limiter.
#[derive(Debug)]
pub(super) struct ReservationSeals {
    own: Seal,
    agreed: Mutex<SharedSeals>,
    /// Serializes fetches from the store; the others wait for the result.
    order: tokio::sync::Mutex<()>,
}

/// The seals agreed on by the instances that share the store.
#[derive(Debug, Default)]
struct SharedSeals {
    /// The seal, and the one before it.
    seals: SmallVec<[Seal; 2]>,
    /// The last fetch from the store, and its result.
    asked: Option<KeyFetch>,
}

#[derive(Clone, Copy, Debug)]
struct KeyFetch {
    at: Instant,
    worked: bool,
}

/// The use of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealUse {
    /// To close an id.
    Close,
    /// To open an id that no known seal opens.
    Open,
}

impl ReservationSeals {
    pub(super) fn new() -> Self {
        Self {
            own: Seal::random(),
            agreed: Mutex::default(),
            order: tokio::sync::Mutex::default(),
        }
    }

    /// Returns seals of which the process's own has these bytes, from an earlier process.
    pub(super) fn sealed_by(own: [u8; 32]) -> Self {
        Self {
            own: Seal::from_bytes(own),
            ..Self::new()
        }
    }

    /// Returns the process's own seal, for a later process.
    pub(super) fn own_bytes(&self) -> [u8; 32] {
        self.own.to_bytes()
    }

    /// Returns the seal that closes ids. Only one for a shared store may have to wait for it.
    pub(super) async fn closing<S: Store>(&self, rules: &Rules, backend: &Backend<S>) -> Seal {
        if let Some(secret) = &rules.keys.secret {
            return Seal::of_secret(secret);
        }
        if !backend.waits() {
            return self.own;
        }
        // If the store does not answer, an earlier seal may be known. Boxed: the call is rare, and its future
        // would be part of every reservation.
        Box::pin(self.agree(&backend.store, SealUse::Close))
            .await
            .ok();
        let latest = self.agreed.lock().seals.first().copied();
        latest.unwrap_or(self.own)
    }

    /// Returns all known seals that may have closed an id, without calling the store.
    pub(super) fn opening(&self, rules: &Rules) -> SmallVec<[Seal; 4]> {
        let secret = rules.keys.secret.map(|secret| Seal::of_secret(&secret));
        let agreed = self.agreed.lock().seals.clone();
        secret.into_iter().chain(agreed).chain([self.own]).collect()
    }

    /// Fetches the seal from the store, unless that was done recently. Returns true if there may be a new
    /// seal since.
    pub(super) async fn agree(
        &self,
        store: &impl Store,
        need: SealUse,
    ) -> Result<bool, StoreError> {
        if let Some(asked) = self.recent_result(need) {
            return asked.map(|()| false);
        }
        let _turn = self.order.lock().await;
        if let Some(asked) = self.recent_result(need) {
            // Another task has fetched it in the meantime.
            return asked.map(|()| true);
        }
        let latest = self.agreed.lock().seals.first().copied();
        let proposal = latest.unwrap_or_else(|| Seal::from_bytes(random()));
        let state = store.shared_state();
        let answer = match state.and_then(|state| state.secret(proposal.to_bytes())) {
            Some(secret) => secret.await.map(Some),
            // No other instance shares the store.
            None => Ok(None),
        };
        let mut agreed = self.agreed.lock();
        agreed.asked = Some(KeyFetch {
            at: Instant::now(),
            worked: answer.is_ok(),
        });
        let Some(seal) = answer?.map(Seal::from_bytes) else {
            return Ok(false);
        };
        let is_new = latest != Some(seal);
        if is_new {
            agreed.seals.insert(0, seal);
            agreed.seals.truncate(2);
        }
        Ok(is_new)
    }

    /// Returns the result of the last fetch, if it is recent enough not to be repeated.
    fn recent_result(&self, need: SealUse) -> Option<Result<(), StoreError>> {
        let asked = self.agreed.lock().asked?;
        let lasts = match need {
            SealUse::Close if asked.worked => LOOK_AGAIN,
            SealUse::Close | SealUse::Open => TRY_AGAIN,
        };
        if asked.at.elapsed() >= lasts {
            return None;
        }
        Some(if asked.worked {
            Ok(())
        } else {
            let message = "the store returned no reservation secret";
            Err(StoreError::transient(message).with_kind(StoreErrorKind::Unreachable))
        })
    }
}
