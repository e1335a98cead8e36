//! Rates that come from plans: loaded from their sources, and prepared for the limits that use them.
//!
//! | module | what it is |
//! |---|---|
//! | `planned` | the bands of every rate of any subject, built in advance |
//! | `replace` | atomic replacement of a source's table |
//! | `draft` | the next version of the plans, built while the current one stays active |
//! | `keep` | repeated loading from the sources |
//! | `file` | plans in a file |
//! | `state` | the age of the plans, and errors since |
//!
//! None of this happens while a request is decided: there, a plan costs one lookup of the subject in a table,
//! and of the band in a list.

mod draft;
mod file;
mod keep;
mod planned;
mod replace;
mod state;
#[cfg(test)]
mod tests;

pub use keep::{FilePlans, LoadPlans, LoadedPlans};
pub(crate) use planned::{CurrentPlans, PreparedPlans};
pub(crate) use replace::PlanSources;
pub use replace::PlansError;
pub use state::PlanState;
