//! A limit's reference to a plan, and the plan's result.

use super::{PlanGroup, PlanShare, PlanTable, RateName, Tables};
use crate::band::{Band, BandDefaults};
use crate::digest::DigestedText;
use crate::key_part::KeyPart;

/// The label of every band from a plan. It does not depend on the rate, so another amount or period uses the
/// same bucket.
pub const LABEL: &str = "plan";

/// The source of a limit's rate in a plan (`rate: { plan: … }`).
#[derive(Clone, Debug)]
pub struct PlannedRate {
    /// The source, by its number.
    pub source: usize,
    /// The rate in the source: that of the limit's unit, unless the limit names another one.
    pub name: RateName,
    /// The key part whose value is the subject.
    pub subject: KeyPart,
    /// The owner of the rate: the subject or its group.
    pub of: RateOwner,
    /// The action for a subject that the source does not know.
    pub unknown: UnknownSubject,
    /// The rules for making bands from rates.
    pub counting: BandDefaults,
    /// A sample of the bands that rates make, if the limit itself has none.
    pub sample: Option<Box<Band>>,
    /// True if reservations may borrow units.
    pub lends: bool,
}

/// The owner of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateOwner {
    /// The subject itself.
    #[default]
    Subject,
    /// The subject's group, by its quota.
    Group,
}

/// The action for a subject that the source does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownSubject {
    /// The band of the limit applies.
    Band,
    /// The subject is unlimited.
    Unlimited,
    /// The request is refused.
    Refuse,
    /// The limit does not apply; the search continues.
    Skip,
}

/// The result of a plan for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanAnswer {
    /// The limit has no plan.
    #[default]
    NotAsked,
    /// The subject has the rate with this number, its own or the one for unset subjects.
    Rate {
        /// Its number in the [`PlanTable::rates`](super::PlanTable::rates) of the limit's rate.
        number: u32,
        /// True if no level sets a rate.
        is_unset: bool,
    },
    /// The subject is unlimited.
    Unlimited {
        /// True if no level sets a rate.
        is_unset: bool,
    },
    /// The source does not know the subject: the band of the limit applies.
    UnknownBand,
    /// The source does not know the subject: it is unlimited.
    UnknownUnlimited,
    /// The source does not know the subject: the limit does not apply to it.
    UnknownSkipped,
    /// The source does not know the subject, or has no rate for it: it is refused.
    Refused {
        /// True if the subject is known, but no level sets a rate.
        is_unset: bool,
    },
}

/// The plan data for one request.
#[derive(Clone, Copy, Debug)]
pub struct PlanLookup<'t> {
    /// The tables of the configuration's sources, by their numbers.
    pub tables: &'t Tables,
    /// A text of the request whose digest is known already.
    pub marked: Option<DigestedText<'t>>,
}

// === impl PlanLookup ===

impl<'t> PlanLookup<'t> {
    #[inline]
    pub(crate) fn table(self, source: usize) -> Option<&'t PlanTable> {
        self.tables.get(source)?.as_deref()
    }
}

impl<'t> From<&'t Tables> for PlanLookup<'t> {
    fn from(tables: &'t Tables) -> Self {
        Self {
            tables,
            marked: None,
        }
    }
}

// === impl PlannedRate ===

impl PlannedRate {
    /// Returns the plan's result for `subject`, and the group of the subject. `subject` is `None` if the
    /// request has none.
    #[inline]
    pub(crate) fn answer<'t>(
        &self,
        subject: Option<&str>,
        lookup: PlanLookup<'t>,
    ) -> (PlanAnswer, Option<PlanGroup<'t>>) {
        let found = lookup.table(self.source).zip(subject);
        let found = found.and_then(|(table, subject)| {
            let column = table.column(&self.name)?;
            table.look((subject, lookup.marked), column, self.of)
        });
        let Some((given, is_unset, group)) = found else {
            return (self.unknown(), None);
        };
        let answer = match given {
            PlanShare::Rate(number) => PlanAnswer::Rate { number, is_unset },
            PlanShare::Unlimited => PlanAnswer::Unlimited { is_unset },
            PlanShare::Nothing => PlanAnswer::Refused { is_unset },
        };
        (answer, Some(group))
    }

    /// Returns true if its subjects are secrets, such as API keys.
    pub fn hides_subject(&self) -> bool {
        self.subject.is_secret()
    }

    fn unknown(&self) -> PlanAnswer {
        match self.unknown {
            UnknownSubject::Band => PlanAnswer::UnknownBand,
            UnknownSubject::Unlimited => PlanAnswer::UnknownUnlimited,
            UnknownSubject::Refuse => PlanAnswer::Refused { is_unset: false },
            UnknownSubject::Skip => PlanAnswer::UnknownSkipped,
        }
    }
}

// === impl PlanAnswer ===

impl PlanAnswer {
    /// Returns the number of the rate, if the result is a rate.
    #[inline]
    pub fn rate(self) -> Option<u32> {
        match self {
            Self::Rate { number, .. } => Some(number),
            _ => None,
        }
    }

    /// Returns the result's name in metrics, or `None` if the limit has no plan.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::NotAsked => None,
            Self::Rate {
                is_unset: false, ..
            } => Some("rate"),
            Self::Unlimited { is_unset: false } => Some("unlimited"),
            Self::Rate { .. } | Self::Unlimited { .. } | Self::Refused { is_unset: true } => {
                Some("unset")
            }
            Self::UnknownBand
            | Self::UnknownUnlimited
            | Self::UnknownSkipped
            | Self::Refused { .. } => Some("unknown"),
        }
    }
}
