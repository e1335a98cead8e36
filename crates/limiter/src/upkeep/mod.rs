//! Background work of a limiter, off the path of any request: keeps lists and plans current, sends counts.
//!
//! | module | what it is |
//! |---|---|
//! | `lists` | reads the lists of guards again |
//! | `plans` | replaces plans, and loads them again from their sources |
//! | `plan_draft` | the next version of the plans, built while the current one stays active |
//! | `counts` | sends counts by address, closes periods and bans |
//! | `snapshots` | writes the snapshot of a store in memory |
//!
//! Each loop ends when the limiter is dropped, and follows reloads.

mod counts;
mod lists;
mod plan_draft;
mod plans;
mod snapshots;

pub(crate) use counts::{keep as keep_counts, send_now as send_counts};
pub(crate) use lists::{ListRefresh, ListUpdates};
pub(crate) use plans::{PlanRefresh, PlanUpdates};
pub(crate) use snapshots::{keep_snapshots, write_snapshot};
