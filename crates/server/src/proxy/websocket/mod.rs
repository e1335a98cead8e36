//! WebSocket, after the handshake: frames pass as they are, and messages of clients are asked for.
//!
//! | module | what it is |
//! |---|---|
//! | `relay`, `ended` | both directions, from the handshake to the end |
//! | `gate` | who is asked |
//! | `bounds` | what one client may send, whoever is asked |
//! | `lane` | one direction, while it lasts |
//! | `parting` | one direction, when it is over |
//! | `frame`, `violation` | where frames begin, and what is wrong with them |
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
