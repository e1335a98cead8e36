//! Alerts to operators by a webhook, off the path of any request.
//!
//! | module | what it is |
//! |---|---|
//! | `alert` | an alert |
//! | `bell` | the sender: it suppresses repetitions, and never waits |
//! | `messenger` | the delivery to the webhook, one after the other |
//! | `watch` | the detection of conditions that no request reports |
//! | `form` | the format for chat bots |
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
