//! Plans: rates per subject, loaded from a source, instead of one rate for all.
//!
//! | module | contents |
//! |---|---|
//! | `limit` | a limit's reference to a plan, and the plan's result |
//! | `document`, `entry` | the document that a source delivers: plans, groups and subjects |
//! | `read`, `json` | the parsers of documents |
//! | `format` | the names of sections and fields in the formats of other systems |
//! | `settings` | the settings of one level, and the merge of levels |
//! | `rate_name` | the names of the rates of a plan |
//! | `flatten` | the merge of a document's levels into one share of each rate per subject |
//! | `table` | a flattened document: from a subject to its rate, in constant time |
//! | `subjects` | the rate of each subject, found by its id with one memory access |
//! | `subject_share` | a subject's share, as an enum and as one number; the terms of a source |
//! | `share_rows` | the shares of subjects in several rates |
//! | `index` | numbered texts in one allocation, found by their hash |
//! | `error` | the errors in a document |
//!
//! A subject, such as a project, may belong to a group, such as a workspace. Its rate is merged from four
//! levels: the plan of its group, the group's own settings, its own plan, and its own settings. They are
//! merged field by field, and the more specific level wins. A time zone belongs to a customer rather than to a plan:
//! there, the group's own settings win over the subject's own plan.
//!
//! A source may set several rates, by [name](RateName): each is merged like that of requests.

mod document;
mod entry;
mod error;
mod flatten;
mod format;
mod index;
mod json;
mod limit;
mod rate_name;
mod read;
mod settings;
mod share_rows;
mod subject_share;
mod subjects;
mod table;

pub use document::{PlanDocument, PlanLevel};
pub use error::PlanErrors;
pub use format::PlanFormat;
pub use limit::{PlanAnswer, PlanLookup, PlannedRate, RateOwner, UnknownSubject};
pub use rate_name::RateName;
pub use read::{EntryReferences, refers};
pub use settings::PlanRate;
pub use subject_share::{PlanShare, PlanTerms, RATE_NAMES_MAX, UnsetShare};
pub use table::{GivenShare, PlanNotes, PlanTable, SubjectEntry, Tables};

pub use limit::LABEL;
pub(crate) use table::PlanGroup;
