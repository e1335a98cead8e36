//! Who is asked whether a message may pass.

use std::time::Duration;

/// Is asked for each message of a client, in their order, one at a time.
pub(crate) trait Gate {
    /// Whether the next message may pass. May take its time: nothing more is read of the client until
    /// it has answered. Dropped before that, the question is withdrawn.
    fn admit(&mut self) -> impl Future<Output = Admit> + Send;
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// It is passed on.
    Pass,
    /// It is not, and the connection is closed. The client is told when to try again, if that is known.
    Refuse { retry_after: Option<Duration> },
}
