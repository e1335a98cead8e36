//! The bounds of one client on one WebSocket, in addition to the gate's decisions on messages.

use super::frame::WebSocketFrames;
use std::time::Duration;
use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
use tidegate_policy::route::MessageBounds;
use tokio::time::Instant;

/// A meter of one client's frames against their bounds.
#[derive(Debug)]
pub(super) struct MessageMeter {
    message_bytes: Option<u64>,
    bytes: Option<Count>,
    frames: Option<Count>,
    began: Instant,
}

/// A quota and its bucket.
#[derive(Debug)]
struct Count {
    quota: Quota,
    bucket: Bucket,
}

/// The bound that a frame exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The frame, or its message, exceeds the maximum size.
    TooLarge,
    /// There were too many frames or bytes. Contains the time to wait.
    TooMuch { retry_after: Duration },
}

impl MessageMeter {
    pub(super) fn new(bounds: &MessageBounds) -> Self {
        let count = |quota: Quota| Count {
            bucket: Bucket::new(&quota),
            quota,
        };
        Self {
            message_bytes: bounds.message_bytes,
            bytes: bounds.bytes.map(count),
            frames: bounds.frames.map(count),
            began: Instant::now(),
        }
    }

    /// Charges the frame whose header, of this many bytes, `frames` has just returned.
    pub(super) fn charge(
        &mut self,
        head_bytes: usize,
        begins_message: bool,
        frames: &WebSocketFrames,
    ) -> Result<(), Excess> {
        if self
            .message_bytes
            .is_some_and(|max| frames.message_bytes() > max)
        {
            return Err(Excess::TooLarge);
        }
        if self.bytes.is_none() && self.frames.is_none() {
            return Ok(());
        }
        let elapsed = u64::try_from(self.began.elapsed().as_micros());
        let now = Timestamp::from_micros(elapsed.unwrap_or(u64::MAX));
        if let Some(count) = &mut self.frames
            && !begins_message
        {
            count.take(1, now)?;
        }
        if let Some(count) = &mut self.bytes {
            let head = u64::try_from(head_bytes).unwrap_or_default();
            count.take(frames.left().saturating_add(head), now)?;
        }
        Ok(())
    }
}

impl Count {
    fn take(&mut self, cost: u64, now: Timestamp) -> Result<(), Excess> {
        let outcome = step::decide_one(&self.quota, &mut self.bucket, Op::Take(cost), now);
        if outcome.is_allowed() {
            return Ok(());
        }
        let retry_after = outcome.wait.as_duration();
        // Waiting does not help a frame that is larger than the burst.
        Err(
            retry_after.map_or(Excess::TooLarge, |retry_after| Excess::TooMuch {
                retry_after,
            }),
        )
    }
}
