//! What a subject or a group has, in words and in one number.

use super::Unset;

/// What a subject, or a group, has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanShare {
    /// The rate of this number; see [`Table::rates`](super::PlanTable::rates).
    Rate(u32),
    /// Anything.
    Unlimited,
    /// Nothing: no level says how much, and the source says that this is to be refused.
    Nothing,
}

/// The same in one number, for there are many who have something: that of a rate, or one of the words
/// below, which are beyond all rates. The very last number is left to those who keep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Has(pub(super) u32);

impl Has {
    pub(super) const UNLIMITED: Self = Self(u32::MAX - 1);
    /// No level says anything, and then it is unlimited.
    const UNSET_UNLIMITED: Self = Self(u32::MAX - 2);
    /// No level says anything, and then it is refused.
    const UNSET_REFUSED: Self = Self(u32::MAX - 3);
    /// No level says anything, and then it has the first rate of the table.
    const UNSET_RATE: Self = Self(u32::MAX - 4);

    /// What those have of whom no level says anything.
    pub(super) fn unset(unset: Unset) -> Self {
        match unset {
            Unset::Unlimited => Self::UNSET_UNLIMITED,
            Unset::Refuse => Self::UNSET_REFUSED,
            Unset::Rate(_) => Self::UNSET_RATE,
        }
    }

    /// It in words, and whether no level says so.
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
