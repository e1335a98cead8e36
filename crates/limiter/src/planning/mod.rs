//! Rates that come from plans: what sources tell, made ready for the limits that ask.
//!
//! | module | what it is |
//! |---|---|
//! | `planned` | the bands of every rate that any subject has, made before anybody asks |
//! | `replace` | another table in place of the last, at once |
//! | `draft` | that table made ready, beside what is said now |
//! | `keep` | asking the sources again and again |
//! | `file` | the source that is a file |
//! | `state` | how old what they told is, and what went wrong since |
//!
//! Nothing of this happens while a request is decided: there, a plan costs finding a subject in a
//! table, and a band in a list.

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
