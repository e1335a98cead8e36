//! Plans: rates per subject, loaded from a source, instead of one rate for all.
//!
//! | module | contents |
//! |---|---|
//! | `limit` | a limit's reference to a plan, and the plan's result |
//! | `source` | the sources of plans |
//! | `document` | the document that a source delivers: plans, groups and subjects |
//! | `read`, `json` | the parsers of documents |
//! | `settings` | the settings of one level, and the merge of levels |
//! | `flatten` | the merge of a document's levels into one rate per subject |
//! | `table` | a flattened document: from a subject to its rate, in constant time |
//! | `subjects` | the rate of each subject, found by its id with one memory access |
//! | `given` | a subject's share, as an enum and as one number |
//! | `index` | numbered texts in one allocation, found by their hash |
//! | `error` | the errors in a document |
//!
//! A subject, such as a project, may belong to a group, such as a workspace. Its rate is merged from four
//! levels: the plan of its group, the group's own settings, its own plan, and its own settings. They are
//! merged field by field, and the more specific level wins.

mod document;
mod error;
mod flatten;
mod given;
mod index;
mod json;
mod limit;
mod read;
mod settings;
mod source;
mod subjects;
mod table;
#[cfg(test)]
mod tests;

pub use document::{PlanDocument, PlanLevel};
pub use error::PlanErrors;
pub use given::PlanShare;
pub use limit::{PlanAnswer, PlanLookup, PlannedRate, RateOwner, Unknown};
pub use read::{Refers, refers};
pub use settings::PlanRate;
pub use source::{Collections, InlinePlans, PlanOrigin, PlanSource, Unset};
pub use table::{PlanNotes, PlanTable, SubjectEntry, Tables};

pub(crate) use limit::LABEL;
pub(crate) use table::PlanGroup;
