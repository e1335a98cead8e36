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
pub(crate) use waiter::{Answer, Asker, Waiter};

use crate::refuse::refuse;
use crate::shared::Shared;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::Instant;

/// How much may be in one call, in tenths of a microsecond of Redis' time: while a script runs, Redis
/// does nothing else.
const CALL_WEIGHT_MAX: u32 = 1_000;

/// What one request surely weighs no more than, unless it says otherwise.
const USUAL_WEIGHT: u32 = 32;

/// The most requests in one call, however light, so that handing out answers stays short too.
const CALL_REQUESTS_MAX: usize = 4_096;

/// The most keys of one general call: they are numbered in a byte.
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
    /// Calls under way.
    carriers: u8,
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
    pub(crate) fn put(&self, waiter: Waiter) -> Next {
        let mut queue = self.queue.lock();
        queue.waiting.push_back(waiter);
        let full_calls = queue.waiting.len() / (CALL_WEIGHT_MAX / USUAL_WEIGHT) as usize;
        let wanted = u8::try_from(full_calls)
            .unwrap_or(u8::MAX)
            .saturating_add(1);
        if queue.carriers == 0 || (queue.carriers < CARRIERS_MAX && queue.carriers < wanted) {
            queue.carriers = queue.carriers.saturating_add(1);
            Next::Carry
        } else {
            Next::Wait
        }
    }

    /// Moves what fits into one call into `batch`, oldest first, but for those who can be refused
    /// here by now. Where nothing waits and the carrier that asks has nothing else to do either, it
    /// is done.
    fn take(&self, batch: &mut Batch, shared: &Shared, is_last: bool) -> Taken {
        let now = Instant::now();
        let mut queue = self.queue.lock();
        while let Some(waiter) = queue
            .waiting
            .pop_front_if(|waiter| batch.has_room(&waiter.request))
        {
            match refuse(&shared.deny, &waiter.request, now) {
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
            return Taken::Batch;
        }
        if is_last {
            queue.carriers = queue.carriers.saturating_sub(1);
        }
        Taken::Nothing
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
