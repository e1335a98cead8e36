//! The frames of a whole stream that comes in pieces, without a connection: for tests and fuzzers.

use super::frame::{FrameStep, WebSocketFrames};
use super::violation::Violation;
use crate::tunnel::Side;

/// The steps read from a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FrameSteps {
    /// The head and payload bytes of each frame, as far as they came.
    pub frames: Vec<(usize, usize)>,
    /// The number of messages that began.
    pub messages: usize,
    /// The bytes that belong to no step.
    pub left_over: usize,
    pub(super) has_closed: bool,
    pub(super) is_between: bool,
    pub(super) violation: Option<Violation>,
}

impl FrameSteps {
    /// Returns true if the stream violates the protocol.
    pub fn is_violation(&self) -> bool {
        self.violation.is_some()
    }
}

/// Reads `stream` as if it came in pieces that end at `cuts`.
pub fn read(from: Side, stream: &[u8], cuts: &[usize]) -> FrameSteps {
    let mut frames = WebSocketFrames::new(from);
    let mut steps = FrameSteps::default();
    let mut begin = 0;
    let mut cuts = cuts.to_vec();
    cuts.push(stream.len());
    cuts.sort_unstable();
    'pieces: for end in cuts {
        while let Some(piece) = stream.get(begin..end) {
            match frames.next(piece) {
                Ok(FrameStep::More) => break,
                Ok(FrameStep::Head {
                    bytes,
                    begins_message,
                }) => {
                    begin += bytes;
                    steps.messages += usize::from(begins_message);
                    steps.frames.push((bytes, 0));
                }
                Ok(FrameStep::Payload { bytes }) => {
                    begin += bytes;
                    if let Some((_, payload)) = steps.frames.last_mut() {
                        *payload += bytes;
                    }
                }
                Err(violation) => {
                    steps.violation = Some(violation);
                    break 'pieces;
                }
            }
        }
    }
    steps.left_over = if steps.violation.is_some() {
        0
    } else {
        stream.len() - begin
    };
    steps.has_closed = frames.has_closed();
    steps.is_between = frames.is_between();
    steps
}
