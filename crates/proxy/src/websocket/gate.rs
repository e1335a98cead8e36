//! The decision on each message.

use std::time::Duration;

/// A decider on each message of a client, in their order, one at a time.
pub trait Gate {
    /// Decides if the next message may pass. It may take its time: nothing more is read from the client
    /// meanwhile. Dropping the future cancels the request.
    fn admit(&mut self) -> impl Future<Output = MessageAdmission> + Send;
}

/// Without a gate, every message passes.
impl<G: Gate + Send> Gate for Option<Box<G>> {
    async fn admit(&mut self) -> MessageAdmission {
        match self {
            Some(gate) => gate.admit().await,
            None => MessageAdmission::Pass,
        }
    }
}

/// The decision on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageAdmission {
    /// The message is forwarded.
    Pass,
    /// The message is not forwarded, and the connection is closed. The client gets the retry time, if it is
    /// known.
    Refuse {
        /// The time after which a message may pass.
        retry_after: Option<Duration>,
    },
}
