//! The share of a subject or a group, as an enum and as one number.

use super::{PlanRate, RateName};
use crate::text::ConfigFault;
use std::sync::Arc;

/// The maximum number of rates that the plans of a source set besides that of requests.
pub const RATE_NAMES_MAX: usize = 16;

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

impl UnsetShare {
    /// Reads a share: `unlimited`, `refuse` or a rate.
    ///
    /// ```
    /// use tidegate_policy::plan::UnsetShare;
    ///
    /// assert_eq!(UnsetShare::parse("refuse"), Ok(UnsetShare::Refuse));
    /// assert!(matches!(UnsetShare::parse("100/min"), Ok(UnsetShare::Rate(_))));
    /// ```
    ///
    /// # Errors
    ///
    /// If the text is none of them.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        match text {
            "unlimited" => Ok(Self::Unlimited),
            "refuse" => Ok(Self::Refuse),
            text => PlanRate::parse(text).map(Self::Rate),
        }
    }
}

/// The rates that the documents of a source may set, and the share of subjects for which they set none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanTerms {
    /// The share of a subject for which no level sets a rate.
    pub unset: UnsetShare,
    /// The names of the rates that plans may set besides that of requests.
    pub rates: Arc<[RateName]>,
}

impl From<UnsetShare> for PlanTerms {
    fn from(unset: UnsetShare) -> Self {
        Self {
            unset,
            ..Self::default()
        }
    }
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

/// A share as one number, because there are many of them: the number of a rate, with [`UNSET`](Self::UNSET) added if
/// no level sets one, or one of the constants below, which are beyond all rates. The last number is reserved for the
/// containers that store shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PackedShare(pub(super) u32);

impl PackedShare {
    pub(super) const UNLIMITED: Self = Self(u32::MAX - 1);
    /// No level sets a rate, and the subject is then unlimited.
    pub(super) const UNSET_UNLIMITED: Self = Self(u32::MAX - 2);
    /// No level sets a rate, and the subject is then refused.
    pub(super) const UNSET_REFUSED: Self = Self(u32::MAX - 3);
    /// Marks the number of the source's rate for subjects for which no level sets one.
    const UNSET: u32 = 1 << 31;

    /// Marks the number of a rate as that of the source, because no level sets one.
    pub(super) fn of_source(self) -> Self {
        Self(self.0 | Self::UNSET)
    }

    /// Returns the share, and true if no level sets a rate.
    #[inline]
    pub(super) fn given(self) -> (PlanShare, bool) {
        match self {
            Self::UNLIMITED => (PlanShare::Unlimited, false),
            Self::UNSET_UNLIMITED => (PlanShare::Unlimited, true),
            Self::UNSET_REFUSED => (PlanShare::Nothing, true),
            Self(rate) if rate & Self::UNSET != 0 => (PlanShare::Rate(rate & !Self::UNSET), true),
            Self(rate) => (PlanShare::Rate(rate), false),
        }
    }
}
