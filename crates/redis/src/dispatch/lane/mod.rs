//! Lanes: requests that arrive while a call is in flight travel together in the next.
//!
//! All requests of a lane may share a call: on one server there is one lane, on a Cluster one for
//! each slot. *Carriers* take what waits in a lane, send it as one call, hand out the answers and
//! come back for more. A lone request finds no carrier, gets one at once and is not delayed; only
//! where more waits than fits into a call do several carriers work side by side.

mod batch;
mod general;
mod queue;
mod waiter;

use batch::{LaneBatch, UndeliveredReplies};
pub(crate) use general::remember;
pub(crate) use waiter::{LaneRequest, ReplyWaiter, RequestReply};

use crate::deny::refuse::refuse;
use crate::dispatch::RedisInner;
use parking_lot::Mutex;
use queue::Queue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The most work in one call, in tenths of a microsecond of Redis' time: while a script runs, Redis does
/// nothing else.
const CALL_WEIGHT_MAX: u32 = 1_000;

/// The weight of an ask whose key is in the call already: no key is read or written for it.
const REPEAT_WEIGHT: u32 = 3;

/// The longest time that requests wait for a call in flight. If Redis is far away or slow, a second call
/// is sent. Long against a round trip in one network, so that requests are batched there.
const PATIENCE: Duration = Duration::from_millis(1);

/// The most requests in one call, however light, so that handing out answers stays short too.
const CALL_REQUESTS_MAX: usize = 4_096;

/// The most keys of one call, however light.
const CALL_KEYS_MAX: usize = 256;

/// The most calls of one lane in flight. One is too few: Redis would be idle while a reply travels. More
/// only make each smaller.
const CARRIERS_MAX: u32 = u8::BITS;

/// The lane of a slot: the requests that wait for the next call.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    queue: Mutex<Queue>,
}

/// The next action after a request was put into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarrierTask {
    /// A carrier will come by.
    Wait,
    /// A carrier of this number has to be sent.
    Carry(u8),
}

impl Lane {
    /// Puts a request into the lane.
    pub(crate) fn put(&self, waiter: LaneRequest, now: Instant) -> CarrierTask {
        let number = self.queue.lock().put(waiter, now);
        number.map_or(CarrierTask::Wait, CarrierTask::Carry)
    }

    /// Releases the buckets of the carrier's last call, then moves the requests that fit into one call
    /// into a batch, oldest first. Skips requests whose caller is gone or whose time is up, and those
    /// that the deny cache refuses by now.
    fn take(&self, carrier: &mut Carrier<'_>, shared: &RedisInner) -> LaneBatch {
        let now = Instant::now();
        let mut batch = LaneBatch::default();
        let mut queue = self.queue.lock();
        queue.release(&std::mem::take(&mut carrier.buckets), true);
        while let Some((waiter, known)) = queue.next(carrier.number, &batch) {
            if waiter.asker.is_gone() {
                queue.release(&waiter.buckets, false);
                continue;
            }
            if waiter.asker.deadline <= now {
                queue.release(&waiter.buckets, false);
                waiter.asker.tell(Err(shared.too_late()));
                continue;
            }
            let refused = refuse(&shared.deny, &waiter.request, now);
            // A request behind another at the same bucket is answered after it.
            match refused.filter(|_| known == 0) {
                Some(reply) => {
                    queue.release(&waiter.buckets, false);
                    shared.stats.refused_here.add(1);
                    waiter.asker.tell(Ok(RequestReply {
                        reply,
                        before: None,
                    }));
                }
                None => {
                    queue.board(&waiter.buckets);
                    batch.add(waiter, known);
                }
            }
        }
        if !batch.is_empty() {
            queue.sent = Some(now);
        } else if carrier.is_idle {
            queue.end(carrier.number);
            carrier.is_done = true;
        }
        carrier.buckets = batch.take_buckets();
        batch
    }
}

/// Carries what waits in the lane of `slot` until nothing does.
pub(crate) async fn carry(shared: Arc<RedisInner>, slot: u16, number: u8) {
    let Some(lane) = shared.lane(slot) else {
        return;
    };
    let mut carrier = Carrier {
        lane,
        number,
        buckets: Vec::new(),
        is_idle: true,
        is_done: false,
    };
    let mut answers = UndeliveredReplies::default();
    while !carrier.is_done {
        carrier.is_idle = answers.is_empty();
        let batch = lane.take(&mut carrier, &shared);
        if batch.is_empty() {
            std::mem::take(&mut answers).hand_out();
        } else {
            answers = batch.run(&shared, slot, answers).await;
        }
    }
}

/// A task that takes requests from a lane, sends them as one call, and distributes the replies.
struct Carrier<'a> {
    lane: &'a Lane,
    number: u8,
    /// The buckets of its call.
    buckets: Vec<u64>,
    /// True if it has no replies to distribute, so that it ends if nothing waits.
    is_idle: bool,
    is_done: bool,
}

/// A carrier that ends in any other way than it should must not be waited for by its lane.
impl Drop for Carrier<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.lane.queue.lock().abandon(self.number);
        }
    }
}

#[cfg(test)]
mod tests;
