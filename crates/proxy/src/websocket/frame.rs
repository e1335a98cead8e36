//! Frames of WebSocket (RFC 6455, section 5.2): their boundaries and their validity. Payloads are not
//! inspected.
//!
//! The three reserved bits pass unchanged: they belong to extensions, which the two ends negotiate.

use super::super::tunnel::Side;
use super::violation::Violation;

const FIN: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// Length values that mean: the length follows, in two bytes or in eight.
const IN_TWO: u8 = 126;
const IN_EIGHT: u8 = 127;

const KEY_BYTES: usize = 4;

/// A tracker of the frames that one side sends.
#[derive(Debug)]
pub(super) struct WebSocketFrames {
    from: Side,
    /// The rest of the present frame's payload, in bytes.
    left: u64,
    /// True if a message has begun and not ended.
    in_message: bool,
    /// The payload size of the latest message, over the frames seen so far.
    message_bytes: u64,
    has_closed: bool,
}

/// The next step in a stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameStep {
    /// A frame header of this many bytes.
    Head { bytes: usize, begins_message: bool },
    /// Payload of this many bytes.
    Payload { bytes: usize },
    /// More bytes are needed.
    More,
}

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Text or binary: the first frame of a message.
    Message,
    Continuation,
    Close,
    /// Ping or pong.
    Control,
}

/// A frame header, parsed and valid.
#[derive(Clone, Copy, Debug)]
struct FrameHead {
    bytes: usize,
    kind: Kind,
    is_final: bool,
    length: u64,
}

impl WebSocketFrames {
    pub(super) fn new(from: Side) -> Self {
        Self {
            from,
            left: 0,
            in_message: false,
            message_bytes: 0,
            has_closed: false,
        }
    }

    /// Returns the step at the start of `bytes`, which follow the previous step. A header is returned once it
    /// is complete; until then the caller must pass it again from its first byte. After a violation no result
    /// is meaningful.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<FrameStep, Violation> {
        if self.left > 0 {
            return Ok(self.pass(bytes.len()));
        }
        let Some(head) = self.head(bytes)? else {
            return Ok(FrameStep::More);
        };
        self.left = head.length;
        match head.kind {
            Kind::Message => {
                self.in_message = !head.is_final;
                self.message_bytes = head.length;
            }
            Kind::Continuation => {
                self.in_message = !head.is_final;
                self.message_bytes = self.message_bytes.saturating_add(head.length);
            }
            Kind::Close => self.has_closed = true,
            Kind::Control => {}
        }
        Ok(FrameStep::Head {
            bytes: head.bytes,
            begins_message: head.kind == Kind::Message,
        })
    }

    /// Returns the rest of the present frame's payload; all of it, if its header was just returned.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the payload size of the latest message, over the frames seen so far.
    pub(super) fn message_bytes(&self) -> u64 {
        self.message_bytes
    }

    /// Returns true between two frames, or before the first.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0
    }

    /// Returns true if there was a Close frame.
    pub(super) fn has_closed(&self) -> bool {
        self.has_closed
    }

    fn pass(&mut self, available: usize) -> FrameStep {
        let bytes = usize::try_from(self.left).map_or(available, |left| left.min(available));
        if bytes == 0 {
            return FrameStep::More;
        }
        let passed = u64::try_from(bytes).unwrap_or(self.left);
        self.left = self.left.saturating_sub(passed);
        FrameStep::Payload { bytes }
    }

    /// Parses a frame header. Each byte is checked before the next one is read, so the result does not
    /// depend on the number of available bytes.
    fn head(&self, bytes: &[u8]) -> Result<Option<FrameHead>, Violation> {
        let Some((&first, rest)) = bytes.split_first() else {
            return Ok(None);
        };
        let is_final = first & FIN != 0;
        let kind = self.kind(first & OPCODE, is_final)?;
        let Some((&second, rest)) = rest.split_first() else {
            return Ok(None);
        };
        let is_masked = second & MASKED != 0;
        match self.from {
            Side::Client if !is_masked => return Err(Violation::NotMasked),
            Side::Upstream if is_masked => return Err(Violation::Masked),
            _ => {}
        }
        let short = second & LENGTH;
        if short >= IN_TWO && matches!(kind, Kind::Close | Kind::Control) {
            return Err(Violation::LongControl);
        }
        let Some((length, length_bytes)) = length(short, rest)? else {
            return Ok(None);
        };
        let key_bytes = if is_masked { KEY_BYTES } else { 0 };
        let head = FrameHead {
            bytes: 2 + length_bytes + key_bytes,
            kind,
            is_final,
            length,
        };
        Ok((bytes.len() >= head.bytes).then_some(head))
    }

    fn kind(&self, opcode: u8, is_final: bool) -> Result<Kind, Violation> {
        match opcode {
            0x0 if self.in_message => Ok(Kind::Continuation),
            0x0 => Err(Violation::NothingToContinue),
            0x1 | 0x2 if self.in_message => Err(Violation::MessageInMessage),
            0x1 | 0x2 => Ok(Kind::Message),
            0x8..=0xA if !is_final => Err(Violation::FragmentedControl),
            0x8 => Ok(Kind::Close),
            0x9 | 0xA => Ok(Kind::Control),
            _ => Err(Violation::ReservedOpcode),
        }
    }
}

/// Returns the length of a payload, and the number of bytes of `rest` that encode it.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, usize)>, Violation> {
    let (length, bytes, shorter) = match short {
        IN_TWO => match rest.first_chunk() {
            Some(length) => (u64::from(u16::from_be_bytes(*length)), 2, 125),
            None => return Ok(None),
        },
        IN_EIGHT => match rest.first_chunk() {
            Some(length) => (u64::from_be_bytes(*length), 8, u64::from(u16::MAX)),
            None => return Ok(None),
        },
        length => return Ok(Some((u64::from(length), 0))),
    };
    if length <= shorter {
        return Err(Violation::LengthNotMinimal);
    }
    if length > u64::MAX >> 1 {
        return Err(Violation::LengthTooLarge);
    }
    Ok(Some((length, bytes)))
}
