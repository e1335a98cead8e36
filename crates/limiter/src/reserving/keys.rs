//! Which seal closes an id, and which may have closed one.
//!
//! | where | the seal is |
//! |---|---|
//! | `store.key_secret` is set | derived from it: the same for all who have the secret |
//! | the store is shared | what those who share it have agreed on, kept in the store |
//! | the store is this process's | this process's own, as its buckets are |
//!
//! A store that is away cannot be asked what was agreed on. Then this process's own closes ids, which
//! nobody else opens; but what is charged without the store nobody else can settle either.

use super::seal::{Seal, random};
use crate::rules::Rules;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::time::Duration;
use tidegate_core::{Store, StoreError, StoreErrorKind};
use tokio::time::Instant;

/// After how long it is looked whether the seal in the store is still the same: it is kept there only
/// as long as somebody looks, and a failover may have lost it.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// After how long it is looked again if that did not work, or an id was not known.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The seals of a limiter.
#[derive(Debug)]
pub(super) struct ReservationSeals {
    own: Seal,
    agreed: Mutex<SharedSeals>,
    /// One at a time asks the store; the others wait for what it says.
    order: tokio::sync::Mutex<()>,
}

/// What those who share the store have agreed on.
#[derive(Debug, Default)]
struct SharedSeals {
    /// The seal, and the one before it.
    seals: SmallVec<[Seal; 2]>,
    /// When the store was last asked, and how that ended.
    asked: Option<KeyFetch>,
}

#[derive(Clone, Copy, Debug)]
struct KeyFetch {
    at: Instant,
    worked: bool,
}

/// Who wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealUse {
    /// Somebody who closes an id.
    Close,
    /// Somebody who could not open one.
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

    /// The seal that closes ids, if nobody has to be asked for it.
    pub(super) fn at_once(&self, rules: &Rules, is_shared: bool) -> Option<Seal> {
        match rules.keys.secret {
            Some(secret) => Some(Seal::of_secret(&secret)),
            None => (!is_shared).then_some(self.own),
        }
    }

    /// The seal that closes ids in a store that is shared.
    pub(super) async fn closing(&self, rules: &Rules, store: &impl Store) -> Seal {
        if let Some(seal) = self.at_once(rules, true) {
            return seal;
        }
        // Where the store does not say, there may be one from before.
        self.agree(store, SealUse::Close).await.ok();
        let latest = self.agreed.lock().seals.first().copied();
        latest.unwrap_or(self.own)
    }

    /// All seals that may have closed an id, without asking anybody.
    pub(super) fn opening(&self, rules: &Rules) -> SmallVec<[Seal; 4]> {
        let secret = rules.keys.secret.map(|secret| Seal::of_secret(&secret));
        let agreed = self.agreed.lock().seals.clone();
        secret.into_iter().chain(agreed).chain([self.own]).collect()
    }

    /// Asks the store for the seal, unless that was done of late; whether there may be another since.
    pub(super) async fn agree(
        &self,
        store: &impl Store,
        need: SealUse,
    ) -> Result<bool, StoreError> {
        if let Some(asked) = self.lately(need) {
            return asked.map(|()| false);
        }
        let _turn = self.order.lock().await;
        if let Some(asked) = self.lately(need) {
            // By whoever was before us.
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

    /// How it ended that the store was asked, if that was so lately that it need not be asked again.
    fn lately(&self, need: SealUse) -> Option<Result<(), StoreError>> {
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
            let message = "the store did not say by which seal reservations are closed";
            Err(StoreError::transient(message).with_kind(StoreErrorKind::Unreachable))
        })
    }
}
