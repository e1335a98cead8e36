//! WebSocket after the handshake: frames pass unchanged, and messages of clients need a decision.
//!
//! | module | what it is |
//! |---|---|
//! | `relay`, `ended` | both directions, from the handshake to the end |
//! | `gate` | the decision on each message |
//! | `bounds` | the bounds of one client, regardless of the gate |
//! | `lane` | one direction while it is open |
//! | `parting` | one direction while it closes |
//! | `frame`, `violation` | frame boundaries, and violations of the protocol |
//! | `close` | Close frames |

mod bounds;
mod close;
mod ended;
mod frame;
mod gate;
mod lane;
mod parting;
mod relay;
#[cfg(test)]
mod tests;
mod violation;

pub(crate) use ended::RelayEnd;
pub(crate) use gate::{Admit, Gate};
pub(crate) use relay::relay;
