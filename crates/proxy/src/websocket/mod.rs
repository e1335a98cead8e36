//! WebSocket after the handshake: frames pass unchanged, and messages of clients need a decision.
//!
//! | module | what it is |
//! |---|---|
//! | `relay`, `relay_end` | both directions, from the handshake to the end |
//! | `gate` | the decision on each message |
//! | `bounds` | the bounds of one client, regardless of the gate |
//! | `lane` | one direction while it is open |
//! | `closing` | one direction while it closes |
//! | `frame`, `violation` | frame boundaries, and violations of the protocol |
//! | `close` | Close frames |
//! | `frame_steps` | a stream without a connection, for tests and fuzzers |

mod bounds;
mod close;
mod closing;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(
    not(feature = "fuzzing"),
    expect(unreachable_pub, reason = "only fuzzers come from outside")
)]
pub mod frame_steps;
mod gate;
mod lane;
mod relay;
mod relay_end;
#[cfg(test)]
mod tests;
mod violation;

pub use gate::{Gate, MessageAdmission};
pub use relay::relay;
pub use relay_end::RelayEnd;
