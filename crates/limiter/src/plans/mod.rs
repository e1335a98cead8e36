//! Rates that come from plans: loaded from their sources, and prepared for the limits that use them.
//!
//! | module | what it is |
//! |---|---|
//! | `bands` | the bands of every rate of any subject, built in advance |
//! | `sources` | the sources of a limiter, across versions of its rules |
//! | `health` | the age of the plans, and errors since |
//! | `load` | loading plans from a source |
//! | `file` | plans in a file |
//!
//! [`upkeep`](crate::upkeep) replaces plans, and loads them again when they are due. None of this happens while
//! a request is decided: there, a plan costs one lookup of the subject in a table, and of the band in a list.

mod bands;
mod file;
mod health;
mod load;
mod sources;
#[cfg(test)]
mod tests;

pub(crate) use bands::{CurrentPlans, PreparedPlans};
pub use health::PlanState;
pub use load::{FilePlans, LoadPlans, LoadedPlans};
pub(crate) use sources::PlanSources;
pub use sources::PlansError;
