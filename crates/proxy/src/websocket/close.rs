//! Close frames (RFC 6455, section 5.5.1), as the gateway writes them.

use super::super::tunnel::Side;
use std::borrow::Cow;
use std::time::Duration;

/// A final control frame with the opcode Close.
const HEAD: u8 = 0x88;
const MASKED: u8 = 0x80;

/// The maximum length of the reason: a control frame holds 125 bytes, and the code takes two of them.
const REASON_BYTES: usize = 123;

/// The code and reason for closing a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Close {
    code: u16,
    reason: Cow<'static, str>,
}

impl Close {
    /// Returns a Close with 1001: the other endpoint or the gateway is going away.
    pub(super) const fn going_away(reason: &'static str) -> Self {
        Self::new(1001, reason)
    }

    /// Returns a Close with 1002: the data was not valid WebSocket.
    pub(super) const fn protocol_error(reason: &'static str) -> Self {
        Self::new(1002, reason)
    }

    /// Returns a Close with 1009: a message exceeds the maximum size.
    pub(super) const fn too_large() -> Self {
        Self::new(1009, "message too big")
    }

    /// Returns a Close with 1011: an error that is not the client's fault.
    pub(super) const fn internal_error(reason: &'static str) -> Self {
        Self::new(1011, reason)
    }

    /// Returns a Close with 1008: there were too many messages.
    pub(super) fn refused(retry_after: Option<Duration>) -> Self {
        let Some(wait) = retry_after else {
            return Self::new(1008, "rate limit exceeded");
        };
        // Round up: a client that comes back a moment early is refused once more.
        let begun = u64::from(wait.subsec_nanos() > 0);
        let seconds = wait.as_secs().saturating_add(begun);
        Self {
            code: 1008,
            reason: format!("rate limit exceeded; retry after {seconds} s").into(),
        }
    }

    const fn new(code: u16, reason: &'static str) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
        }
    }

    /// Encodes the frame for `side`. An upstream accepts masked frames only; a key of zeros leaves the
    /// payload unchanged.
    pub(super) fn frame(&self, side: Side) -> Vec<u8> {
        let reason = self.reason.floor_char_boundary(REASON_BYTES);
        let reason = self.reason.get(..reason).unwrap_or_default();
        let length = u8::try_from(2 + reason.len()).unwrap_or_default();
        let mut frame = match side {
            Side::Client => vec![HEAD, length],
            Side::Upstream => vec![HEAD, MASKED | length, 0, 0, 0, 0],
        };
        frame.extend_from_slice(&self.code.to_be_bytes());
        frame.extend_from_slice(reason.as_bytes());
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        let reason = |wait| Close::refused(Some(wait)).reason;
        let after = "rate limit exceeded; retry after";
        assert_eq!(reason(Duration::from_nanos(1)), format!("{after} 1 s"));
        assert_eq!(reason(Duration::from_secs(2)), format!("{after} 2 s"));
        assert_eq!(reason(Duration::from_millis(2001)), format!("{after} 3 s"));
        assert!(reason(Duration::MAX).len() <= REASON_BYTES);
    }

    #[test]
    fn a_reason_that_is_too_long_is_cut_between_two_characters() {
        let close = Close {
            code: 1000,
            reason: "é".repeat(100).into(),
        };
        let frame = close.frame(Side::Client);
        assert_eq!(frame.len(), 2 + 2 + 122);
        assert_eq!(frame[..4], [0x88, 124, 0x03, 0xe8]);
        assert_eq!(frame[4..], *"é".repeat(61).as_bytes());
    }

    #[test]
    fn an_upstream_gets_its_frame_masked() {
        let frame = Close::going_away("ö").frame(Side::Upstream);
        assert_eq!(frame, [0x88, 0x84, 0, 0, 0, 0, 0x03, 0xe9, 0xc3, 0xb6]);
    }
}
