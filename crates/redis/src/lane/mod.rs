//! Lanes: requests that arrive while a call is under way travel together in the next.
//!
//! All requests of a lane may share a call: on one server there is one lane, on a Cluster one for
//! each slot. *Carriers* take what waits in a lane, send it as one call, hand out the answers and
//! come back for more. A lone request finds no carrier, gets one at once and is not delayed; only
//! where more waits than fits into a call do several carriers work side by side.

mod batch;
mod general;
mod waiter;

pub(crate) use batch::Askers;
use batch::{Answers, Batch};
pub(crate) use general::remember;
pub(crate) use waiter::{Answer, Asker, Waiter};

use crate::refuse::refuse;
use crate::shared::Shared;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much may be in one call, in tenths of a microsecond of Redis' time: while a script runs, Redis
/// does nothing else.
const CALL_WEIGHT_MAX: u32 = 1_000;

/// What the same request weighs once more: it is counted, and no key is read or written for it.
const REPEAT_WEIGHT: u32 = 3;

/// A call that has been under way for longer than this is not waited for, where Redis is far away or
/// slow: what came since is sent as well. Long against a round trip in one network, so that there
/// requests gather.
const PATIENCE: Duration = Duration::from_millis(1);

/// The most requests in one call, however light, so that handing out answers stays short too.
const CALL_REQUESTS_MAX: usize = 4_096;

/// The most keys of one general call, however light.
const CALL_KEYS_MAX: usize = 256;

/// The most calls of one lane under way at a time. One is too few: Redis would be idle while an
/// answer travels. More only make each smaller.
const CARRIERS_MAX: u8 = 8;

#[derive(Debug, Default)]
pub(crate) struct Lane {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    /// Of all that wait, but for those who ask for the same as whoever came before them.
    weight: u32,
    /// Calls under way.
    carriers: u8,
    /// When the last of them was sent, or a carrier for it.
    sent: Option<Instant>,
    /// Who came last, be it still here or under way.
    last: Option<u64>,
}

/// What is to be done after a request was put into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A carrier will come by.
    Wait,
    /// A carrier has to be sent.
    Carry,
}

impl Lane {
    /// Puts a request into the lane.
    pub(crate) fn put(&self, mut waiter: Waiter, now: Instant) -> Next {
        let mut queue = self.queue.lock();
        let is_repeat = queue.last == Some(waiter.identity);
        queue.last = Some(waiter.identity);
        waiter.is_repeat = is_repeat;
        if is_repeat {
            waiter.weight = REPEAT_WEIGHT;
        } else {
            queue.weight = queue.weight.saturating_add(waiter.weight);
        }
        queue.waiting.push_back(waiter);
        if !queue.wants_carrier(is_repeat, now) {
            return Next::Wait;
        }
        queue.carriers = queue.carriers.saturating_add(1);
        queue.sent = Some(now);
        Next::Carry
    }

    /// Moves what fits into one call into `batch`, oldest first, but for those who have stopped
    /// waiting, whose time is up or who can be refused here by now. Where nothing waits and the carrier that asks has nothing else to do either, it
    /// is done.
    fn take(&self, batch: &mut Batch, shared: &Shared, is_last: bool) -> Taken {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        while let Some(waiter) = queue.waiting.pop_front_if(|waiter| batch.has_room(waiter)) {
            if !waiter.is_repeat {
                queue.weight = queue.weight.saturating_sub(waiter.weight);
            }
            if waiter.asker.is_gone() {
                continue;
            }
            if waiter.asker.deadline <= now {
                waiter.asker.tell(Err(shared.too_late()));
                continue;
            }
            let known = refuse(&shared.deny, &waiter.request, now);
            // Whoever stands behind somebody else at the same bucket is answered after them.
            match known.filter(|_| !batch.shares_bucket(&waiter.request)) {
                Some(reply) => {
                    shared.stats.refused_here.add(1);
                    waiter.asker.tell(Ok(Answer {
                        reply,
                        before: None,
                    }));
                }
                None => batch.add(waiter),
            }
        }
        if !batch.is_empty() {
            queue.sent = Some(now);
            return Taken::Batch;
        }
        if is_last {
            queue.carriers = queue.carriers.saturating_sub(1);
        }
        Taken::Nothing
    }
}

impl Queue {
    /// Whether a further carrier is to be sent: where none is under way, where more waits than fits
    /// into the calls of those who are, and where the last was sent too long ago. However many ask
    /// for the same, one call at a time is enough: what it brings back may answer them all.
    fn wants_carrier(&self, is_repeat: bool, now: Instant) -> bool {
        let full_calls = self.weight / CALL_WEIGHT_MAX;
        let is_late = || {
            let sent = self.sent.unwrap_or(now);
            now.saturating_duration_since(sent) > PATIENCE
        };
        match self.carriers {
            0 => true,
            CARRIERS_MAX.. => false,
            carriers => u32::from(carriers) <= full_calls || (!is_repeat && is_late()),
        }
    }
}

/// What a carrier found.
enum Taken {
    /// Something to send.
    Batch,
    Nothing,
}

/// Carries what waits in the lane of `slot` until nothing does.
pub(crate) async fn carry(shared: Arc<Shared>, slot: u16) {
    let Some(lane) = shared.lane(slot) else {
        return;
    };
    let mut carrier = Carrier {
        lane,
        is_done: false,
    };
    let mut answers = Answers::default();
    loop {
        let mut batch = Batch::new(shared.scripts.is_open);
        let is_last = answers.is_empty();
        match lane.take(&mut batch, &shared, is_last) {
            Taken::Batch => answers = batch.run(&shared, slot, answers).await,
            Taken::Nothing if is_last => {
                carrier.is_done = true;
                return;
            }
            Taken::Nothing => std::mem::take(&mut answers).hand_out(),
        }
    }
}

/// A carrier that ends in any other way than it should must not be waited for by its lane.
struct Carrier<'a> {
    lane: &'a Lane,
    is_done: bool,
}

impl Drop for Carrier<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut queue = self.lane.queue.lock();
            queue.carriers = queue.carriers.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
