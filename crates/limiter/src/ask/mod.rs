//! The verbs that ask the store.
//!
//! | module | what it is |
//! |---|---|
//! | `check` | deciding requests: immediately if the store can, otherwise across the network |
//! | `attempt` | a decision that could not be made immediately |
//! | `reserve` | an attempt that charges an estimate |
//! | `acquire` | an attempt whose permits are held by an id |
//! | `each_limit` | limits that are decided separately |
//! | `throttle` | a single bucket under a quota that the caller supplies |

mod acquire;
mod attempt;
mod check;
mod each_limit;
mod reserve;
mod throttle;

pub(crate) use acquire::acquire;
pub use attempt::{Attempt, AttemptTerms, PendingDecision};
pub(crate) use check::{attempt, guards, repeat};
pub use reserve::PendingReservation;
pub(crate) use reserve::prepare_reservation;
pub use throttle::{Throttle, ThrottleOutcome};
pub(crate) use throttle::{charge, charge_at_once, reset, reset_after};
