//! Alerts to operators by a webhook, off the path of any request.
//!
//! | module | what it is |
//! |---|---|
//! | `alert` | an alert |
//! | `sender` | the sender: it suppresses repetitions, and never waits |
//! | `messenger` | the delivery to the webhook, one after the other |
//! | `watch` | the detection of conditions that no request reports |
//! | `form` | the format for chat bots |
//!
//! ```text
//! ring ─▶ sent lately? ─▶ queue (bounded) ─▶ messenger ─▶ POST, again after a pause, given up
//! ```

mod alert;
mod form;
mod messenger;
mod sender;
mod watch;

pub use alert::{Alert, AlertWindow};
pub use messenger::Messenger;
pub(crate) use sender::AlertMetrics;
pub use sender::AlertSender;
pub use tidegate_config::alerts::AlertKind;
pub use watch::watch;
