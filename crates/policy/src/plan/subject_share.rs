//! The share of a subject or a group, as an enum and as one number.

use super::PlanRate;

/// The share of a subject for which no level sets a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsetShare {
    /// No limit.
    #[default]
    Unlimited,
    /// This rate.
    Rate(PlanRate),
    /// The subject is refused.
    Refuse,
}

/// The share of a subject or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanShare {
    /// The rate with this number; see [`PlanTable::rates`](super::PlanTable::rates).
    Rate(u32),
    /// No limit.
    Unlimited,
    /// Refused: no level sets a rate, and the source refuses such subjects.
    Nothing,
}

/// A share as one number, because there are many of them: the number of a rate, or one of the constants
/// below, which are beyond all rates. The last number is reserved for the containers that store shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedShare(pub(super) u32);

impl PackedShare {
    pub(super) const UNLIMITED: Self = Self(u32::MAX - 1);
    /// No level sets a rate, and the subject is then unlimited.
    const UNSET_UNLIMITED: Self = Self(u32::MAX - 2);
    /// No level sets a rate, and the subject is then refused.
    const UNSET_REFUSED: Self = Self(u32::MAX - 3);
    /// No level sets a rate, and the subject then has the first rate of the table.
    const UNSET_RATE: Self = Self(u32::MAX - 4);

    /// Returns the share of subjects for which no level sets a rate.
    pub(super) fn unset(unset: UnsetShare) -> Self {
        match unset {
            UnsetShare::Unlimited => Self::UNSET_UNLIMITED,
            UnsetShare::Refuse => Self::UNSET_REFUSED,
            UnsetShare::Rate(_) => Self::UNSET_RATE,
        }
    }

    /// Returns the share, and true if no level sets a rate.
    #[inline]
    pub(super) fn given(self) -> (PlanShare, bool) {
        match self {
            Self::UNLIMITED => (PlanShare::Unlimited, false),
            Self::UNSET_UNLIMITED => (PlanShare::Unlimited, true),
            Self::UNSET_REFUSED => (PlanShare::Nothing, true),
            Self::UNSET_RATE => (PlanShare::Rate(0), true),
            Self(rate) => (PlanShare::Rate(rate), false),
        }
    }
}
