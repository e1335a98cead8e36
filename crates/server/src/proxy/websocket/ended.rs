//! How relays end, and what each side is told.

use super::super::tunnel::{self, Side};
use super::bounds::Excess;
use super::close::Close;
use super::violation::Violation;
use std::io::ErrorKind;
use std::time::Duration;

/// How a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelayReport {
    /// Bytes that the upstream took; the farewell is not among them.
    pub(crate) to_upstream: u64,
    /// Bytes that the client took; the farewell is not among them.
    pub(crate) to_client: u64,
    /// Messages of the client that were admitted.
    pub(crate) messages: u64,
    pub(crate) why: RelayEnd,
}

/// Why a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// Both sides had finished.
    Closed,
    /// Nothing moved either way for too long.
    Idle,
    /// The connection to one side broke.
    Broke { side: Side, kind: ErrorKind },
    /// The gate refused a message.
    Refused { retry_after: Option<Duration> },
    /// The client sent more frames or bytes than it may.
    TooMuch { retry_after: Duration },
    /// The client sent a message that is larger than any may be.
    TooLarge,
    /// One side sent what is not WebSocket.
    Violated { side: Side, violation: Violation },
    /// The relay was told to end.
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
    /// What the client and the upstream are told, if there is anything to tell.
    pub(super) fn farewells(self) -> Option<(Close, Close)> {
        let away = Close::going_away("");
        match self {
            // They know, or are gone.
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
