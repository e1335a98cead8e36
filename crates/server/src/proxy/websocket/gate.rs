//! The decision on each message.

use std::time::Duration;

/// A decider on each message of a client, in their order, one at a time.
pub(crate) trait Gate {
    /// Decides if the next message may pass. It may take its time: nothing more is read from the client
    /// meanwhile. Dropping the future cancels the request.
    fn admit(&mut self) -> impl Future<Output = Admit> + Send;
}

/// The decision on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admit {
    /// The message is forwarded.
    Pass,
    /// The message is not forwarded, and the connection is closed. The client gets the retry time, if it is
    /// known.
    Refuse { retry_after: Option<Duration> },
}
