//! Sending requests to Redis: the state that all parts of a store share, and the lanes of its slots.

mod lane;
mod scripts;

pub(crate) use lane::RequestReply;
use lane::{CarrierTask, Lane, LaneRequest, ReplyWaiter, carry, remember};
pub(crate) use scripts::Scripts;

use crate::any_op::{self, ScriptCall};
use crate::clock::StoreClock;
use crate::deny::DenyCache;
use crate::failure::store_error;
use crate::key::KeyNaming;
use crate::layout::{self, OpenKey};
use crate::request::{RedisKey, SlotAsks};
use crate::stats::RedisStats;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Inspection, StoreError, StoreErrorKind};
use tidegate_redis_client::protocol::{self, Cmd};
use tidegate_redis_client::{
    Connection, RedisTopology, RepeatEffect, SLOTS, Script, slot, spawn_short,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most requests that may wait for Redis; further requests fail immediately.
const WAITING_MAX: usize = 65_536;

/// The time limit of a refund.
const REFUND_TIME: Duration = Duration::from_secs(1);

/// The shortest time limit of an inspection.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// The state that all clones of a store share.
#[derive(Debug)]
pub(crate) struct RedisInner {
    pub(crate) connection: Connection,
    pub(crate) scripts: Scripts,
    pub(crate) clock: StoreClock,
    pub(crate) naming: KeyNaming,
    pub(crate) deny: DenyCache,
    pub(crate) stats: RedisStats,
    /// The time limit of a decision.
    pub(crate) timeout: Duration,
    /// One, or on a Cluster one for each slot.
    lanes: Box<[Lane]>,
    waiting: AtomicUsize,
    hasher: RandomState,
}

impl RedisInner {
    /// Creates the lanes: one for a single server, one for each slot of a Cluster.
    pub(crate) fn new(connection: Connection, scripts: Scripts, options: SharedOptions) -> Self {
        let lanes = if *connection.mode() == RedisTopology::Cluster {
            usize::from(SLOTS)
        } else {
            1
        };
        Self {
            connection,
            scripts,
            clock: options.clock,
            naming: options.naming,
            deny: DenyCache::new(options.deny_cache),
            stats: RedisStats::default(),
            timeout: options.timeout,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            waiting: AtomicUsize::new(0),
            hasher: RandomState::default(),
        }
    }

    /// The slot whose lane a key's requests take; 0 where there is but one.
    pub(crate) fn slot(&self, key: &RedisKey) -> u16 {
        if self.lanes.len() > 1 {
            slot(self.naming.name(key).name)
        } else {
            0
        }
    }

    /// Returns the lane of a slot.
    pub(crate) fn lane(&self, slot: u16) -> Option<&Lane> {
        self.lanes.get(usize::from(slot))
    }

    /// Puts requests into one call of the general script.
    pub(crate) fn general(&self, requests: &[&SlotAsks]) -> (ScriptCall, Cmd) {
        let script = &self.scripts.general;
        if !self.scripts.is_open {
            let call = any_op::encode(requests);
            let command = self.command(script, call.keys.iter(), &call.program);
            return (call, command);
        }
        let call = any_op::encode_open(requests);
        let names: Vec<RedisKey> = call
            .keys
            .iter()
            .map(|key| OpenKey::read(key).name.into())
            .collect();
        let mut command = self.command(script, names.iter(), &call.program);
        command.arg(layout::push_forms(&call.quotas, &call.keys));
        (call, command)
    }

    /// A script's call.
    pub(crate) fn command<'k>(
        &self,
        script: &Script,
        keys: impl ExactSizeIterator<Item = &'k RedisKey>,
        program: &[u8],
    ) -> Cmd {
        let mut command = protocol::cmd("EVALSHA");
        command.arg(script.sha()).arg(keys.len());
        for key in keys {
            command.arg(key.as_slice());
        }
        command.arg(program);
        if let Some(now) = self.clock.argument() {
            command.arg(now.as_micros());
        }
        command
    }

    /// Sends a request. Its reply comes from [`PendingReply::answer`].
    pub(crate) fn send(
        self: &Arc<Self>,
        slot: u16,
        request: SlotAsks,
        options: AskOptions,
    ) -> Result<PendingReply<'_>, StoreError> {
        let place = self.place()?;
        let (answer, reply) = oneshot::channel();
        let asker = ReplyWaiter {
            deadline: options.deadline,
            wants_before: options.wants_before,
            answer,
        };
        let Some(lane) = self.lane(slot) else {
            return Err(StoreError::permanent("unknown slot"));
        };
        let weight = self.weight(&request);
        let hash = |key: &RedisKey| self.hasher.hash_one(key.as_slice());
        let waiter = LaneRequest {
            buckets: request.keys.iter().map(hash).collect(),
            request,
            weight,
            is_repeat: false,
            asker,
        };
        if let CarrierTask::Carry(number) = lane.put(waiter, options.now) {
            spawn_short(carry(Arc::clone(self), slot, number));
        }
        Ok(PendingReply {
            shared: self,
            reply,
            _place: place,
        })
    }

    /// Executes a request of one ask in a separate call, and returns the state of its bucket before.
    pub(crate) async fn look(&self, request: &SlotAsks) -> Result<Option<Inspection>, StoreError> {
        let script = &self.scripts.general;
        let (call, command) = self.general(&[request]);
        let slot = request.keys.first().map_or(0, |key| self.slot(key));
        // The caller is an operator or a test, and prefers waiting to a timeout.
        let deadline = Instant::now() + self.timeout.max(LOOK_TIME);
        let run = self
            .connection
            .run(slot, script, &command, RepeatEffect::Refund, deadline);
        any_op::inspection(&call, &run.await.map_err(store_error)?)
    }

    /// About how much of Redis' time a request takes, in tenths of a microsecond.
    fn weight(&self, request: &SlotAsks) -> u32 {
        if self.scripts.is_open {
            layout::weight(request)
        } else {
            any_op::weight(request)
        }
    }

    /// Executes a refund outside the lanes: no client waits for it, and it must not delay requests.
    /// Returns true if it succeeded; it is never retried.
    pub(crate) async fn give_back(&self, slot: u16, request: &SlotAsks) -> bool {
        let Ok(_place) = self.place() else {
            return false;
        };
        let (call, command) = self.general(&[request]);
        let sent = Instant::now();
        let deadline = sent + REFUND_TIME;
        let script = &self.scripts.general;
        let run = self
            .connection
            .run(slot, script, &command, RepeatEffect::Refund, deadline);
        let Ok(value) = run.await else {
            return false;
        };
        let Ok(mut replay) = any_op::Replay::new(&call, &value) else {
            return false;
        };
        // So that the next request of a flood can be refused here, and is not charged and refunded again.
        if let Ok(decided) = replay.next(request, false) {
            remember(self, request, (&replay, &decided), sent);
        }
        true
    }

    /// Reserves one of the places in flight.
    fn place(&self) -> Result<InFlightGuard<'_>, StoreError> {
        let place = InFlightGuard(&self.waiting);
        if self.waiting.fetch_add(1, Relaxed) < WAITING_MAX {
            return Ok(place);
        }
        let message = format!("{WAITING_MAX} requests are already waiting for Redis");
        Err(StoreError::transient(message).with_kind(StoreErrorKind::Overloaded))
    }

    /// Returns the error of a request whose time is up.
    pub(crate) fn too_late(&self) -> StoreError {
        let message = format!("Redis did not respond within {:?}", self.timeout);
        StoreError::transient(message).with_kind(StoreErrorKind::Timeout)
    }
}

/// Options of a store, apart from its connection.
#[derive(Debug)]
pub(crate) struct SharedOptions {
    pub(crate) clock: StoreClock,
    pub(crate) naming: KeyNaming,
    pub(crate) deny_cache: usize,
    pub(crate) timeout: Duration,
}

/// Options of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskOptions {
    /// The time at which it was made.
    pub(crate) now: Instant,
    pub(crate) deadline: Instant,
    pub(crate) wants_before: bool,
}

/// A request in flight.
pub(crate) struct PendingReply<'a> {
    shared: &'a RedisInner,
    reply: oneshot::Receiver<Result<RequestReply, StoreError>>,
    _place: InFlightGuard<'a>,
}

impl PendingReply<'_> {
    /// Waits for the reply. Counts a failure in the statistics.
    pub(crate) async fn answer(self) -> Result<RequestReply, StoreError> {
        let stats = &self.shared.stats;
        match self.reply.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                stats.failures.add(1);
                Err(error)
            }
            Err(_) => {
                stats.failures.add(1);
                Err(self.shared.too_late())
            }
        }
    }
}

/// A place in flight, released when the caller stops waiting for any reason.
struct InFlightGuard<'a>(&'a AtomicUsize);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
