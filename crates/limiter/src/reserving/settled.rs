//! What comes of settling a reservation.

use crate::error::with_causes;
use std::fmt;
use tidegate_core::StoreError;

/// How it stands with a reservation after [`Limiter::commit`](crate::Limiter::commit) or
/// [`Limiter::refund`](crate::Limiter::refund).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledReservation {
    pub(super) state: SettleState,
    pub(super) policy: Box<str>,
    pub(super) estimate: u64,
    pub(super) actual: u64,
}

/// How it stands with a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettleState {
    /// It is settled: what was reserved and not used has come back, what was used beyond it is
    /// charged.
    Settled,
    /// It was settled before, by this call or by another; nothing has changed.
    Already,
    /// It had expired: the estimate stays charged. What was used beyond it is charged all the same.
    Expired,
    /// The estimate stays charged, because it was charged by an instance that could not reach the
    /// store, and this is another; or because the store keeps the bands of a bucket apart.
    Kept,
}

impl SettleState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Settled, Self::Already, Self::Expired, Self::Kept];

    /// The word for it in logs, answers and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Already => "already",
            Self::Expired => "expired",
            Self::Kept => "kept",
        }
    }

    /// What two parts of one reservation amount to together: what is worst, and of two that are as
    /// good, what this call has done.
    pub(super) fn and(self, other: Self) -> Self {
        let rank = |state| match state {
            Self::Already => 0,
            Self::Settled => 1,
            Self::Kept => 2,
            Self::Expired => 3,
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

impl SettledReservation {
    /// How it stands.
    pub fn state(&self) -> SettleState {
        self.state
    }

    /// The policy by which it was reserved.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// How many units were reserved.
    pub fn estimate(&self) -> u64 {
        self.estimate
    }

    /// How many were used, as this call says.
    pub fn actual(&self) -> u64 {
        self.actual
    }
}

/// Why a reservation could not be settled.
///
/// Its `Debug` is for people, because that is what a program prints whose `main` returns it.
#[non_exhaustive]
pub enum SettleError {
    /// There is no such reservation: the id was made up, damaged, or closed by somebody with another
    /// secret.
    Unknown,
    /// The store could not tell. Some buckets may be settled, others not: the same call again settles
    /// the rest, and nothing twice.
    Store {
        /// The policy by which it was reserved; empty where not even that could be found out.
        policy: String,
        /// Why.
        source: StoreError,
    },
    /// The limiter was closed.
    Closed,
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such reservation",
            Self::Store { .. } => "the store could not tell; the same again settles what is left",
            Self::Closed => "the limiter is closed",
        })
    }
}

impl fmt::Debug for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_causes(self, f)
    }
}

impl std::error::Error for SettleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store { source, .. } => Some(source),
            Self::Unknown | Self::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_two_states_counts_and_words_differ() {
        use SettleState::{Already, Expired, Kept, Settled};
        for (one, other, both) in [
            (Already, Settled, Settled),
            (Settled, Kept, Kept),
            (Kept, Expired, Expired),
            (Already, Already, Already),
            (Already, Expired, Expired),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
        let mut words = SettleState::ALL.map(SettleState::as_str).to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), SettleState::ALL.len());
    }
}
