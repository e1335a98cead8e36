//! Telling people that something needs them: by a webhook, off the path of any request.
//!
//! | module | what it is |
//! |---|---|
//! | `alert` | what is told |
//! | `bell` | what rings: it forgets what was told just now, and never waits |
//! | `messenger` | brings what rang to where people are, one after the other |
//! | `watch` | looks out for what nobody would tell |
//! | `form` | alerts as bots of chats take them |
//!
//! ```text
//! ring ─▶ told lately? ─▶ queue (bounded) ─▶ messenger ─▶ POST, again after a pause, given up
//! ```

mod alert;
mod bell;
mod form;
mod messenger;
mod watch;

pub(crate) use alert::Alert;
pub(crate) use bell::{AlertMetrics, AlertSender};
pub(crate) use messenger::Messenger;
pub(crate) use tidegate_policy::alerts::AlertKind;
pub(crate) use watch::watch;
