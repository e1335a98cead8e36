//! Plans: how much each subject has, as a source tells it, instead of one rate for all.
//!
//! | module | what it is |
//! |---|---|
//! | `limit` | what a limit says of a plan |
//! | `source` | where plans come from |
//! | `document` | what a source delivers: plans, groups and subjects |
//! | `read`, `json` | a document from its text |
//! | `settings` | what one level says, and how levels come together |
//! | `flatten` | what all levels of a document say, put together for each subject |
//! | `table` | a document flattened: from a subject to its rate, in constant time |
//! | `subjects` | what each subject has, found by its id in one look |
//! | `given` | what a subject has, in words and in one number |
//! | `index` | texts in one piece of memory, numbered and found by their hash |
//! | `error` | what is wrong with a document |
//!
//! A subject, such as a project, may belong to a group, such as a workspace. What it has is the plan of
//! its group, then what the group itself says, then its own plan, then what it says itself: field by
//! field, and the more specific wins.

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
