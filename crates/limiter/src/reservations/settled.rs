//! The result of settling a reservation.

use super::warned::ShareWarning;
use crate::error::with_causes;
use std::fmt;
use tidegate_core::StoreError;
use tidegate_policy::unit::CostFault;

/// The result of [`Limiter::commit`](crate::Limiter::commit) or [`Limiter::refund`](crate::Limiter::refund).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{LimitSpec, Limiter, Request, SettleState};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("tokens").band("1000/h"))
///     .reserve(Duration::from_secs(60))
///     .build()?;
/// let reservation = limiter.reserve(&Request::new().cost(800), None).await?;
/// let settled = limiter.commit(reservation.id().expect("there is room"), 150).await?;
/// assert_eq!(settled.state(), SettleState::Settled);
/// let [unit] = settled.units() else { panic!("the limits count one unit") };
/// assert_eq!((&*unit.name, unit.estimate, unit.actual), ("requests", 800, 150));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledReservation {
    pub(super) state: SettleState,
    pub(super) policy: Box<str>,
    pub(super) units: Vec<SettledUnit>,
    pub(super) warnings: Vec<ShareWarning>,
}

/// The amounts of one unit that were reserved and used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledUnit {
    /// The name of the unit.
    pub name: Box<str>,
    /// The amount reserved.
    pub estimate: u64,
    /// The amount used, as this call reported it; the estimate if it did not name the unit.
    pub actual: u64,
}

/// The state of a reservation after a call that settles it. With several buckets, the worst of their states:
/// for a caller, only [`Settled`](Self::Settled) and [`Already`](Self::Already) mean that unused units were
/// refunded.
///
/// | state | unused units | usage beyond the estimate |
/// |---|---|---|
/// | [`Settled`](Self::Settled) | refunded by this call | charged by this call |
/// | [`Already`](Self::Already) | refunded by an earlier call | charged by an earlier call |
/// | [`Expired`](Self::Expired) | stay charged | charged |
/// | [`Kept`](Self::Kept) | stay charged | is not charged |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettleState {
    /// Settled by this call: unused units are refunded, and usage beyond the estimate is charged.
    Settled,
    /// Settled before, by an earlier attempt of this call or by another one; nothing has changed.
    Already,
    /// Expired: the estimate stays charged. Usage beyond it is charged all the same.
    Expired,
    /// The estimate stays charged: an instance that could not reach the store charged it, and this is another
    /// instance; or the store keeps the bands of a bucket in different groups.
    Kept,
}

impl SettleState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Settled, Self::Already, Self::Expired, Self::Kept];

    /// Returns the name used in logs, responses and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Already => "already",
            Self::Expired => "expired",
            Self::Kept => "kept",
        }
    }

    /// Returns the combined state of two parts of one reservation: the worse one, and of two that are equally
    /// good, the one that this call caused.
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
    /// Returns the state.
    pub fn state(&self) -> SettleState {
        self.state
    }

    /// Returns the name of the policy by which it was reserved.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Returns the units that the limits of the policy count, in the order written.
    pub fn units(&self) -> &[SettledUnit] {
        &self.units
    }

    /// Returns the `warn` shares that this call reached by usage beyond the estimate, like
    /// [`Decision::warnings`](crate::Decision::warnings).
    pub fn warnings(&self) -> &[ShareWarning] {
        &self.warnings
    }
}

/// The reason why a reservation could not be settled.
///
/// `Debug` prints the same readable text as `Display`, with causes, because that is the output of a program
/// whose `main` returns the error.
#[non_exhaustive]
///
/// Only [`Store`](Self::Store) is worth a retry: the same call again settles the rest, and nothing twice.
pub enum SettleError {
    /// There is no such reservation: the id is forged, damaged, or was closed with another secret.
    Unknown,
    /// The usage names a unit that was not reserved by, or is a number that could be of several. Nothing is
    /// settled.
    BadCost(CostFault),
    /// The store did not answer. Some buckets may be settled, others not: the same call again settles the
    /// rest, and nothing twice.
    Store {
        /// The policy by which it was reserved; empty if not even that is known.
        policy: String,
        /// The cause.
        source: StoreError,
    },
    /// The limiter was closed.
    Closed,
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadCost(fault) => return fault.fmt(f),
            Self::Unknown => "unknown reservation",
            Self::Store { .. } => "the store is unavailable; retry with the same request",
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
            Self::Unknown | Self::BadCost(_) | Self::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_state_wins_and_every_state_has_its_own_name() {
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
