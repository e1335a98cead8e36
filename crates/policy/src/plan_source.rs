//! The sources of plans.

use crate::documents::DocumentStoreSettings;
use crate::plan::{PlanFormat, PlanTable, PlanTerms};
use crate::text::Secret;
use crate::tls::ClientTls;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A source of plans (`plans`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSource {
    /// The name by which limits refer to it.
    pub name: String,
    /// The place of the plans.
    pub origin: PlanOrigin,
    /// The interval between two reads.
    pub refresh: Duration,
    /// The timeout of one read.
    pub timeout: Duration,
    /// The rates that its documents may set, and the share of a subject for which they set none.
    pub terms: PlanTerms,
    /// The format of its document, if it is a file or at a URL.
    pub format: PlanFormat,
}

/// The place of plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanOrigin {
    /// A file, in YAML or JSON.
    File(String),
    /// A URL that responds with JSON or YAML.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// The bearer token of the request.
        token: Option<Secret>,
        /// The TLS settings of the request.
        tls: ClientTls,
    },
    /// Collections in `MongoDB`.
    MongoDb {
        /// `mongodb://` or `mongodb+srv://`. A secret, because it may contain a password.
        url: Secret,
        /// The database.
        database: String,
        /// The collections in it, and their fields.
        collections: Box<Collections>,
    },
    /// A document store, with each plan, group and subject under its name.
    Shelf(DocumentStoreSettings),
    /// The configuration itself: the plans take effect together with it.
    Inline(InlinePlans),
    /// The program that embeds Tidegate, which supplies them.
    Program,
}

/// Plans in a configuration. A value equals only its own clones: two texts are two different plans.
#[derive(Clone)]
pub struct InlinePlans(Arc<PlanTable>);

/// The names of collections and fields in `MongoDB`.
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
    /// The field of the settings with the amount.
    pub amount: String,
    /// The field of the settings with the period in seconds.
    pub period: String,
    /// The field of plans and groups with the settings of the group's quota, if there is one.
    pub quota: Option<String>,
    /// The field of a group with the id of its plan.
    pub plan_of_group: String,
    /// The field of a subject with the id of its group.
    pub group_of_subject: String,
    /// The field that holds the subject's id in requests.
    pub subject_id: String,
}

impl Default for Collections {
    fn default() -> Self {
        let owned = str::to_owned;
        Self {
            plans: owned("plans"),
            groups: owned("groups"),
            subjects: owned("subjects"),
            settings: owned("settings"),
            amount: owned("amount"),
            period: owned("period"),
            quota: None,
            plan_of_group: owned("plan"),
            group_of_subject: owned("group"),
            subject_id: owned("_id"),
        }
    }
}

// === impl InlinePlans ===

impl InlinePlans {
    /// Creates inline plans from their table.
    pub fn new(table: PlanTable) -> Self {
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
    /// The default interval between two reads.
    pub const REFRESH: Duration = Duration::from_secs(30);
    /// The default interval for writable sources, where a check for changes is cheap.
    pub const REFRESH_SHELF: Duration = Duration::from_secs(2);
    /// The default timeout of one read.
    pub const TIMEOUT: Duration = Duration::from_secs(5);

    /// Returns true if both refer to the same plans, regardless of credentials.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let other_format = other.format;
        match (&self.origin, &other.origin) {
            (PlanOrigin::Shelf(one), PlanOrigin::Shelf(other)) => {
                one.place.is_same_place(&other.place)
            }
            (one, other) => one == other && self.format == other_format,
        }
    }

    /// Returns the plans, if the configuration contains them.
    pub fn inline(&self) -> Option<&Arc<PlanTable>> {
        match &self.origin {
            PlanOrigin::Inline(plans) => Some(&plans.0),
            _ => None,
        }
    }

    /// Returns the document store that holds the plans, if it is a source of that kind.
    pub fn shelf(&self) -> Option<&DocumentStoreSettings> {
        match &self.origin {
            PlanOrigin::Shelf(place) => Some(place),
            _ => None,
        }
    }

    /// Returns the kind of source, for labels and logs.
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
