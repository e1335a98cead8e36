//! What a limit says of a plan, and what a plan answers.

use super::{PlanGroup, PlanRate, PlanShare, PlanTable, Tables};
use crate::Policy;
use crate::config::{BandDefaults, build_band};
use crate::limit::{Band, KeyPart, Limit};
use crate::lookup::DigestedText;
use std::time::Duration;

/// Identifies the band of every plan: the same whatever it says, so that another amount or another
/// period finds the same bucket.
pub(crate) const LABEL: &str = "plan";

/// A limit whose rate comes from a plan (`rate: { plan: … }`).
#[derive(Clone, Debug)]
pub struct PlannedRate {
    /// The source, by its number.
    pub source: usize,
    /// Whose rate it is.
    pub subject: KeyPart,
    /// Whether the rate is the subject's own, or its group's.
    pub of: RateOwner,
    /// What a subject has that the source does not know.
    pub unknown: Unknown,
    /// How bands are made from rates.
    pub(crate) counting: BandDefaults,
    /// Such a band as rates will make, where the limit itself has none.
    pub(crate) sample: Option<Box<Band>>,
    /// Whether units are lent.
    pub(crate) lends: bool,
}

/// Whose rate it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateOwner {
    /// The subject's own.
    #[default]
    Subject,
    /// The quota of the group that it belongs to.
    Group,
}

/// What a subject has that the source does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The band that the limit has.
    Band,
    /// Anything.
    Unlimited,
    /// Nothing: the request is refused.
    Refuse,
    /// Whatever comes after: the limit does not apply to it.
    Skip,
}

/// What a plan answered for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanAnswer {
    /// Nothing was asked: the limit has no plan.
    #[default]
    NotAsked,
    /// The subject has the rate of this number, of its own or of those for whom nothing is set.
    Rate {
        /// Its number in [`PlanTable::rates`](super::PlanTable::rates).
        number: u32,
        /// Whether no level says how much.
        is_unset: bool,
    },
    /// The subject is unlimited.
    Unlimited {
        /// Whether no level says how much.
        is_unset: bool,
    },
    /// The source does not know the subject: it has the band of the limit.
    UnknownBand,
    /// The source does not know the subject: it is unlimited.
    UnknownUnlimited,
    /// The source does not know the subject: the limit does not apply to it.
    UnknownSkipped,
    /// The source does not know the subject, or says nothing of it: it is refused.
    Refused {
        /// Whether the subject is known, and no level says how much.
        is_unset: bool,
    },
}

/// What plans say, for one request.
#[derive(Clone, Copy, Debug)]
pub struct PlanLookup<'t> {
    /// The tables of the configuration's sources, by their numbers.
    pub tables: &'t Tables,
    /// A text of the request that was marked already.
    pub marked: Option<DigestedText<'t>>,
}

// === impl Told ===

impl<'t> PlanLookup<'t> {
    #[inline]
    fn table(self, source: usize) -> Option<&'t PlanTable> {
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

// === impl Policy ===

impl Policy {
    /// Begins to fetch what a plan will be asked for about the text that `told` has marked, where it is
    /// the guards' [`mark`](crate::Guards::mark): what is far away is on its way while they are asked.
    #[inline]
    pub fn fetch_plan(&self, told: PlanLookup<'_>) {
        let table = self.foreseen.and_then(|source| told.table(source));
        if let (Some(table), Some(marked)) = (table, told.marked) {
            table.fetch(marked);
        }
    }
}

// === impl Plan ===

impl PlannedRate {
    /// What the plan answers for `subject`, and the group that it belongs to. `None` is a subject that
    /// the request does not tell.
    #[inline]
    pub(crate) fn answer<'t>(
        &self,
        subject: Option<&str>,
        told: PlanLookup<'t>,
    ) -> (PlanAnswer, Option<PlanGroup<'t>>) {
        let found = told.table(self.source).zip(subject);
        let found = found.and_then(|(table, subject)| table.look(subject, self.of, told.marked));
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

    /// Whether its subjects are secrets, such as API keys.
    pub fn hides_subject(&self) -> bool {
        self.subject.is_secret()
    }

    fn unknown(&self) -> PlanAnswer {
        match self.unknown {
            Unknown::Band => PlanAnswer::UnknownBand,
            Unknown::Unlimited => PlanAnswer::UnknownUnlimited,
            Unknown::Refuse => PlanAnswer::Refused { is_unset: false },
            Unknown::Skip => PlanAnswer::UnknownSkipped,
        }
    }
}

// === impl Answer ===

impl PlanAnswer {
    /// The number of the rate that the plan told, if it told one.
    #[inline]
    pub fn rate(self) -> Option<u32> {
        match self {
            Self::Rate { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The word for it in metrics; `None` where nothing was asked.
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

// === impl Limit ===

impl Limit {
    /// The band that a rate of its plan makes. The error says why there can be none.
    pub fn planned_band(&self, rate: PlanRate) -> Result<Band, String> {
        let Some(plan) = &self.plan else {
            return Err("the limit has no plan".to_owned());
        };
        let mut band = build_band(rate, LABEL, plan.counting)?;
        band.quota = band
            .quota
            .with_refundable(plan.counting.refundable || band.quota.is_refundable());
        if plan.lends {
            band.quota = band.quota.with_lending(true);
        }
        Ok(band)
    }

    /// What a refusal closes it by for those who have `rate`, if it does. Only a limit that blocks at all
    /// lets a plan say for how long. The error says why it cannot be.
    pub fn planned_block(&self, rate: PlanRate) -> Result<Option<Band>, String> {
        match (&self.block, rate.block_us) {
            (None, _) | (_, Some(0)) => Ok(None),
            (Some(own), None) => Ok(Some(own.clone())),
            (Some(_), Some(length_us)) => {
                let block = Band::blocking(Duration::from_micros(length_us));
                block.map(|block| Some(self.in_its_mode(block)))
            }
        }
    }

    /// Its bands; of one whose rates all come from a plan, such a band as they make, to tell what its
    /// buckets look like.
    pub fn shapes(&self) -> &[Band] {
        match (self.bands.as_slice(), &self.plan) {
            ([], Some(plan)) => plan.sample.as_deref().map_or(&[], std::slice::from_ref),
            (bands, _) => bands,
        }
    }
}
