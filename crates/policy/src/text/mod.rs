//! Texts that people write: rates, durations, sizes, names and secrets, and their errors.
//!
//! | module | contents |
//! |---|---|
//! | `rate`, `duration`, `size`, `scalar` | single values |
//! | `secret` | a text that is never printed |
//! | `sha256` | the hash of a token, a certificate or a document |
//! | `node` | a parsed document as a tree, with the position of each node |
//! | `fault`, `suggest` | error messages |
//! | `counted` | a number and its noun |
//! | `calendar_period` | the periods of the calendar |

mod calendar_period;
mod counted;
pub mod duration;
mod fault;
mod node;
pub mod rate;
pub mod scalar;
mod secret;
mod sha256;
pub mod size;
mod suggest;

pub use calendar_period::CalendarPeriod;
pub use counted::counted;
pub use duration::{parse as parse_duration_us, read as duration};
pub use fault::ConfigFault;
pub use node::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
pub use rate::{amount as parse_amount, numbers as parse_rate};
pub use secret::Secret;
pub use sha256::Sha256;
pub use suggest::closest;
