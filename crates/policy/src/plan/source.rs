//! Where plans come from.

use super::{PlanRate, PlanTable};
use crate::config::Secret;
use crate::source::DocumentStoreSettings;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A source of plans (`plans`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSource {
    /// Its name, by which limits ask for it.
    pub name: String,
    /// Where it is.
    pub origin: PlanOrigin,
    /// How often it is asked.
    pub refresh: Duration,
    /// How long one answer may take.
    pub timeout: Duration,
    /// What a subject has of which no level says how much.
    pub unset: Unset,
}

/// Where plans are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanOrigin {
    /// In a file, in YAML or JSON.
    File(String),
    /// At a URL, which answers in JSON or YAML.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// What is presented as a bearer token.
        token: Option<Secret>,
    },
    /// In collections of `MongoDB`.
    MongoDb {
        /// `mongodb://` or `mongodb+srv://`: it may hold a password.
        url: Secret,
        /// The database.
        database: String,
        /// The collections in it, and their fields.
        collections: Box<Collections>,
    },
    /// On a shelf, each plan, group and subject by its name.
    Shelf(DocumentStoreSettings),
    /// In the configuration itself: in force from the moment that the configuration is.
    Inline(InlinePlans),
    /// In the program, which tells them itself.
    Program,
}

/// Plans that a configuration contains. Equal only to their own clones: two texts are two plans.
#[derive(Clone)]
pub struct InlinePlans(Arc<PlanTable>);

/// What plans are called in `MongoDB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collections {
    /// The collection of plans.
    pub plans: String,
    /// The collection of groups.
    pub groups: String,
    /// The collection of subjects.
    pub subjects: String,
    /// The field with the settings, in all three.
    pub settings: String,
    /// The field of the settings that says how many.
    pub amount: String,
    /// The field of the settings that says per how many seconds.
    pub period: String,
    /// The field of plans and groups with the settings of the group's quota, if there is one.
    pub quota: Option<String>,
    /// The field of a group with the id of its plan.
    pub plan_of_group: String,
    /// The field of a subject with the id of its group.
    pub group_of_subject: String,
    /// The field that requests know a subject by.
    pub subject_id: String,
}

impl Default for Collections {
    fn default() -> Self {
        let owned = str::to_owned;
        Self {
            plans: owned("plans"),
            groups: owned("workspaces"),
            subjects: owned("projects"),
            settings: owned("rateLimitSettings"),
            amount: owned("N"),
            period: owned("T"),
            quota: None,
            plan_of_group: owned("tariffPlanId"),
            group_of_subject: owned("workspaceId"),
            subject_id: owned("_id"),
        }
    }
}

/// What a subject has of which no level says how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unset {
    /// Anything.
    #[default]
    Unlimited,
    /// This much.
    Rate(PlanRate),
    /// Nothing.
    Refuse,
}

// === impl InlinePlans ===

impl InlinePlans {
    pub(crate) fn new(table: PlanTable) -> Self {
        Self(Arc::new(table))
    }
}

impl PartialEq for InlinePlans {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for InlinePlans {}

impl fmt::Debug for InlinePlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlinePlans")
            .field("subjects", &self.0.subjects())
            .finish_non_exhaustive()
    }
}

// === impl PlanSource ===

impl PlanSource {
    /// How often a source is asked unless told.
    pub const REFRESH: Duration = Duration::from_secs(30);
    /// The same for those that can be written to: asking whether they have changed costs next to nothing.
    pub const REFRESH_SHELF: Duration = Duration::from_secs(2);
    /// How long one answer may take unless told.
    pub const TIMEOUT: Duration = Duration::from_secs(5);

    /// Whether both lead to the same plans, whoever asks.
    pub fn is_same_place(&self, other: &Self) -> bool {
        match (&self.origin, &other.origin) {
            (PlanOrigin::Shelf(one), PlanOrigin::Shelf(other)) => {
                one.place.is_same_place(&other.place)
            }
            (one, other) => one == other,
        }
    }

    /// Returns the plans, if the configuration contains them.
    pub fn inline(&self) -> Option<&Arc<PlanTable>> {
        match &self.origin {
            PlanOrigin::Inline(plans) => Some(&plans.0),
            _ => None,
        }
    }

    /// Where it can be written to, if anywhere.
    pub fn shelf(&self) -> Option<&DocumentStoreSettings> {
        match &self.origin {
            PlanOrigin::Shelf(place) => Some(place),
            _ => None,
        }
    }

    /// Where it is, in a word, for labels and logs.
    pub fn kind(&self) -> &'static str {
        match &self.origin {
            PlanOrigin::File(_) => "file",
            PlanOrigin::Http { .. } => "http",
            PlanOrigin::MongoDb { .. } => "mongodb",
            PlanOrigin::Shelf(place) => place.kind(),
            PlanOrigin::Inline(_) => "inline",
            PlanOrigin::Program => "program",
        }
    }
}
