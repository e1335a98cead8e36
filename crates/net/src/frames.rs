//! A budget of HTTP/2 control frames, counted by their headers as bytes pass.
//!
//! Control frames (`PRIORITY`, `WINDOW_UPDATE`, `PING`, `SETTINGS`, `RST_STREAM`) cost a client nothing and
//! the server some work each, so a flood of them slows down all other clients. A well-behaved client sends
//! them because something happened: it began a request, or it received a piece of a response. Those earn
//! budget; so does time, a little.

use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::time::Instant;

/// The length of the connection preface, before the first frame.
const PREFACE: usize = 24;
/// The length of a frame header.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const ENHANCE_YOUR_CALM: u32 = 11;

/// The initial budget of control frames.
const START: u32 = 2_000;
/// The maximum budget.
const MOST: u32 = 100_000;
/// The budget earned by a request.
const OF_REQUEST: u32 = 8;
/// The budget earned by a piece of a response: updates of two windows, and a measurement of the round trip.
/// Each [`BYTES`] bytes of it earn one more, for clients that update windows in small steps.
const OF_PIECE: u32 = 4;
const BYTES: u32 = 256;
/// The time that earns one frame. Clients ping over connections that are otherwise silent.
const OF_TIME: Duration = Duration::from_millis(10);

/// A meter of the frames of one connection, both ways.
#[derive(Debug)]
pub(super) struct FrameMeter {
    received: Http2Frames,
    sent: Http2Frames,
    /// The control frames that the client may still send.
    left: u32,
    /// The time of the last earning by time: read only when nothing is left.
    earned_at: Instant,
    /// The last stream that the client began.
    stream: u32,
    floods: Counter,
}

impl FrameMeter {
    /// Creates a meter that counts floods by `floods`.
    pub(super) fn new(floods: Counter) -> Self {
        Self {
            received: Http2Frames {
                skip: PREFACE,
                ..Http2Frames::default()
            },
            sent: Http2Frames::default(),
            left: START,
            earned_at: Instant::now(),
            stream: 0,
            floods,
        }
    }

    /// Counts frames that the client has sent. Returns false once there are too many.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> bool {
        let Self {
            received,
            left,
            earned_at,
            stream,
            ..
        } = self;
        let mut is_flood = false;
        received.follow(bytes, |frame| match frame.kind {
            DATA => {}
            HEADERS => {
                *stream = frame.stream.max(*stream);
                earn(left, OF_REQUEST);
            }
            _ => {
                if *left == 0 {
                    *left = earned(earned_at);
                }
                is_flood |= *left == 0;
                *left = left.saturating_sub(1);
            }
        });
        if is_flood {
            self.floods.inc();
        }
        !is_flood
    }

    /// Counts frames that were sent to the client.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let left = &mut self.left;
        self.sent.follow(bytes, |frame| match frame.kind {
            DATA => earn(left, OF_PIECE.saturating_add(frame.length / BYTES)),
            // The client acknowledges it.
            PING | SETTINGS if frame.flags & ACK == 0 => earn(left, 1),
            _ => {}
        });
    }

    /// Returns the frame with the reason for closing the connection; `None` in the middle of another frame.
    pub(super) fn goaway(&self) -> Option<[u8; 17]> {
        if self.sent.skip > 0 || self.sent.known > 0 {
            return None;
        }
        let mut frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [self.stream, ENHANCE_YOUR_CALM].map(u32::to_be_bytes);
        let payload = frame.iter_mut().skip(HEAD);
        for (to, from) in payload.zip(words.iter().flatten()) {
            *to = *from;
        }
        Some(frame)
    }
}

fn earn(left: &mut u32, more: u32) {
    *left = left.saturating_add(more).min(MOST);
}

/// Returns the frames that time has earned.
fn earned(at: &mut Instant) -> u32 {
    let now = Instant::now();
    let passed = now.saturating_duration_since(*at);
    *at = now;
    let frames = passed.as_millis() / OF_TIME.as_millis();
    u32::try_from(frames).map_or(START, |frames| frames.min(START))
}

/// The fields of a frame header.
#[derive(Clone, Copy, Debug)]
struct Frame {
    length: u32,
    kind: u8,
    flags: u8,
    stream: u32,
}

/// A tracker of frames in one direction, in pieces of any size.
#[derive(Debug, Default)]
struct Http2Frames {
    head: [u8; HEAD],
    /// The number of known bytes of the header.
    known: usize,
    /// The number of payload bytes still to come.
    skip: usize,
}

impl Http2Frames {
    /// Calls `see` for each frame whose header ends in `bytes`.
    fn follow(&mut self, mut bytes: &[u8], mut see: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let wanted = if self.skip > 0 {
                self.skip
            } else {
                HEAD.saturating_sub(self.known)
            };
            let count = wanted.min(bytes.len());
            let (new, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            bytes = rest;
            if self.skip > 0 {
                self.skip = self.skip.saturating_sub(count);
                continue;
            }
            for (to, from) in self.head.iter_mut().skip(self.known).zip(new) {
                *to = *from;
            }
            self.known = self.known.saturating_add(count);
            if self.known == HEAD {
                let [high, mid, low, kind, flags, stream @ ..] = self.head;
                let length = u32::from_be_bytes([0, high, mid, low]);
                self.known = 0;
                self.skip = usize::try_from(length).unwrap_or(usize::MAX);
                see(Frame {
                    length,
                    kind,
                    flags,
                    // The first bit is reserved.
                    stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        let head = [0, 0, length, kind, 0, 0, 0, 0, 1];
        [&head[..], &vec![0; length.into()]].concat()
    }

    /// Returns a meter after the preface.
    fn meter() -> FrameMeter {
        let mut meter = FrameMeter::new(Counter::default());
        assert!(meter.receive(&[0; PREFACE]));
        meter
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_counted_at_any_split() {
        let flood = frame(2, 5).repeat(2_001);
        for size in [1, 7, 14, 4_096] {
            let mut meter = meter();
            let mut passed = 0;
            for piece in flood.chunks(size) {
                if !meter.receive(piece) {
                    break;
                }
                passed += piece.len();
            }
            // Up to the header of the first frame beyond the budget.
            let whole = 2_000 * 14;
            assert!(passed < whole + HEAD && passed + size > whole, "{size}");
            assert_eq!(meter.floods.get(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_responses_and_time_earn_frames() {
        let mut meter = meter();
        assert!(meter.receive(&frame(8, 4).repeat(2_000)));
        for _ in 0..1_000 {
            assert!(meter.receive(&frame(HEADERS, 10)));
            assert!(meter.receive(&frame(8, 4).repeat(8)));
            meter.send(&frame(DATA, 100));
            assert!(meter.receive(&frame(8, 4).repeat(4)));
        }
        advance(Duration::from_secs(1)).await;
        assert!(meter.receive(&frame(PING, 8).repeat(100)));
        assert!(!meter.receive(&frame(PING, 8)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_goaway_is_never_sent_within_another_frame() {
        let mut meter = meter();
        assert!(meter.receive(&frame(HEADERS, 10)));
        let whole = frame(DATA, 100);
        let payload = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 11];
        assert_eq!(meter.goaway(), Some(payload));
        for byte in &whole[..whole.len() - 1] {
            meter.send(&[*byte]);
            assert_eq!(meter.goaway(), None);
        }
        meter.send(&whole[whole.len() - 1..]);
        assert_eq!(meter.goaway(), Some(payload));
    }
}
