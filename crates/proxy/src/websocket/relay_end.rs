//! The end of a relay, and the Close frames for each side.

use super::super::tunnel::{self, Side};
use super::bounds::Excess;
use super::close::Close;
use super::violation::Violation;
use std::io::ErrorKind;
use std::time::Duration;

/// The result of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayReport {
    /// The bytes that the upstream took, without the Close frame.
    pub(crate) to_upstream: u64,
    /// The bytes that the client took, without the Close frame.
    pub(crate) to_client: u64,
    /// The messages of the client that were admitted.
    pub(crate) messages: u64,
    pub why: RelayEnd,
}

/// The reason why a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// Both sides had finished.
    Closed,
    /// Nothing moved either way for too long.
    Idle,
    /// The connection to one side broke.
    Broke {
        /// The side.
        side: Side,
        /// The error.
        kind: ErrorKind,
    },
    /// The gate refused a message.
    Refused {
        /// The time after which a message may pass.
        retry_after: Option<Duration>,
    },
    /// The client sent more frames or bytes than allowed.
    TooMuch {
        /// The time after which more is allowed.
        retry_after: Duration,
    },
    /// The client sent a message that exceeds the maximum size.
    TooLarge,
    /// One side sent data that is not valid WebSocket.
    Violated {
        /// The side.
        side: Side,
        /// The rule that it broke.
        violation: Violation,
    },
    /// The server is draining.
    GoingAway,
}

impl From<tunnel::TunnelEnd> for RelayEnd {
    fn from(why: tunnel::TunnelEnd) -> Self {
        match why {
            tunnel::TunnelEnd::Closed => Self::Closed,
            tunnel::TunnelEnd::Idle => Self::Idle,
            tunnel::TunnelEnd::Broke { side, kind } => Self::Broke { side, kind },
        }
    }
}

impl From<Excess> for RelayEnd {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::TooLarge => Self::TooLarge,
            Excess::TooMuch { retry_after } => Self::TooMuch { retry_after },
        }
    }
}

impl RelayEnd {
    /// Returns the Close frames for the client and the upstream, if any are due.
    pub(super) fn close_frames(self) -> Option<(Close, Close)> {
        let away = Close::going_away("");
        match self {
            // Both sides have closed, or are gone.
            Self::Closed | Self::Broke { .. } => None,
            Self::Idle => {
                let idle = Close::going_away("nothing was sent for too long");
                Some((idle.clone(), idle))
            }
            Self::Refused { retry_after } => Some((Close::refused(retry_after), away)),
            Self::TooMuch { retry_after } => Some((Close::refused(Some(retry_after)), away)),
            Self::TooLarge => Some((Close::too_large(), away)),
            Self::Violated { side, violation } => {
                let guilty = Close::protocol_error(violation.text());
                Some(match side {
                    Side::Client => (guilty, away),
                    Side::Upstream => (Close::internal_error("the upstream failed"), guilty),
                })
            }
            Self::GoingAway => Some((away.clone(), away)),
        }
    }

    pub(super) fn is_violation_of(self, of: Side) -> bool {
        matches!(self, Self::Violated { side, .. } if side == of)
    }
}
