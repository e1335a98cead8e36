//! What all parts of a store share.

use crate::clock::StoreClock;
use crate::connection::{Connection, Repeat};
use crate::deny::DenyCache;
use crate::general::{self, ScriptCall};
use crate::key::{KeyNaming, SLOTS, slot};
use crate::lane::{CarrierTask, Lane, LaneRequest, ReplyWaiter, RequestReply, carry, remember};
use crate::layout::{self, OpenKey};
use crate::request::{RedisKey, SlotAsks};
use crate::script::Script;
use crate::scripts::Scripts;
use crate::settings::RedisTopology;
use crate::stats::RedisStats;
use crate::tasks;
use foldhash::fast::RandomState;
use redis::Cmd;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::{Inspection, StoreError, StoreErrorKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most requests that may wait for Redis at a time; what comes beyond is told so at once.
const WAITING_MAX: usize = 65_536;

/// How long it may take to give back.
const REFUND_TIME: Duration = Duration::from_secs(1);

/// How long it may take to look into a bucket.
const LOOK_TIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct RedisInner {
    pub(crate) connection: Connection,
    pub(crate) scripts: Scripts,
    pub(crate) clock: StoreClock,
    pub(crate) naming: KeyNaming,
    pub(crate) deny: DenyCache,
    pub(crate) stats: RedisStats,
    /// How long a decision may take.
    pub(crate) timeout: Duration,
    /// One, or on a Cluster one for each slot.
    lanes: Box<[Lane]>,
    waiting: AtomicUsize,
    hasher: RandomState,
}

impl RedisInner {
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

    pub(crate) fn lane(&self, slot: u16) -> Option<&Lane> {
        self.lanes.get(usize::from(slot))
    }

    /// Puts requests into one call of the general script.
    pub(crate) fn general(&self, requests: &[&SlotAsks]) -> (ScriptCall, Cmd) {
        let script = &self.scripts.general;
        if !self.scripts.is_open {
            let call = general::encode(requests);
            let command = self.command(script, call.keys.iter(), &call.program);
            return (call, command);
        }
        let call = general::encode_open(requests);
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
        let mut command = redis::cmd("EVALSHA");
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

    /// Sends a request on its way; what becomes of it is told by [`PendingReply::answer`].
    pub(crate) fn send(
        self: &Arc<Self>,
        slot: u16,
        request: SlotAsks,
        options: AskOptions,
    ) -> Result<PendingReply<'_>, StoreError> {
        let place = self.place()?;
        let (answer, told) = oneshot::channel();
        let asker = ReplyWaiter {
            deadline: options.deadline,
            wants_before: options.wants_before,
            answer,
        };
        let Some(lane) = self.lane(slot) else {
            return Err(StoreError::permanent("there is no such slot"));
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
            tasks::spawn_short(carry(Arc::clone(self), slot, number));
        }
        Ok(PendingReply {
            shared: self,
            told,
            _place: place,
        })
    }

    /// Carries out a request of one ask by itself, and tells what was in its bucket before.
    pub(crate) async fn look(&self, request: &SlotAsks) -> Result<Option<Inspection>, StoreError> {
        let script = &self.scripts.general;
        let (call, command) = self.general(&[request]);
        let slot = request.keys.first().map_or(0, |key| self.slot(key));
        // Whoever asks this way is a person or a test, and would rather wait than not know.
        let deadline = Instant::now() + self.timeout.max(LOOK_TIME);
        let run = self
            .connection
            .run(slot, script, &command, Repeat::Refund, deadline);
        general::inspection(&call, &run.await?)
    }

    /// About how much of Redis' time a request takes, in tenths of a microsecond.
    fn weight(&self, request: &SlotAsks) -> u32 {
        if self.scripts.is_open {
            layout::weight(request)
        } else {
            general::weight(request)
        }
    }

    /// Gives back what `request` says, apart from the lanes: nobody waits for it, and it must not
    /// hold up those who wait for something else. Tells whether it was done; it is never tried
    /// again.
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
            .run(slot, script, &command, Repeat::Refund, deadline);
        let Ok(value) = run.await else {
            return false;
        };
        let Ok(mut replay) = general::Replay::new(&call, &value) else {
            return false;
        };
        // So that the next of a flood can be told of it without it being charged and given back again.
        if let Ok(decided) = replay.next(request, false) {
            remember(self, request, (&replay, &decided), sent);
        }
        true
    }

    /// One of the places for those who wait.
    fn place(&self) -> Result<InFlightGuard<'_>, StoreError> {
        let place = InFlightGuard(&self.waiting);
        if self.waiting.fetch_add(1, Relaxed) < WAITING_MAX {
            return Ok(place);
        }
        let message = format!("{WAITING_MAX} requests are waiting for Redis already");
        Err(StoreError::transient(message).with_kind(StoreErrorKind::Overloaded))
    }

    /// What those are told whose time is up.
    pub(crate) fn too_late(&self) -> StoreError {
        let message = format!("Redis did not answer within {:?}", self.timeout);
        StoreError::transient(message).with_kind(StoreErrorKind::Timeout)
    }
}

/// What a store is told beside its connection.
#[derive(Debug)]
pub(crate) struct SharedOptions {
    pub(crate) clock: StoreClock,
    pub(crate) naming: KeyNaming,
    pub(crate) deny_cache: usize,
    pub(crate) timeout: Duration,
}

/// How a request is to be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskOptions {
    /// When it was asked.
    pub(crate) now: Instant,
    pub(crate) deadline: Instant,
    pub(crate) wants_before: bool,
}

/// A request under way.
pub(crate) struct PendingReply<'a> {
    shared: &'a RedisInner,
    told: oneshot::Receiver<Result<RequestReply, StoreError>>,
    _place: InFlightGuard<'a>,
}

impl PendingReply<'_> {
    pub(crate) async fn answer(self) -> Result<RequestReply, StoreError> {
        let stats = &self.shared.stats;
        match self.told.await {
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

/// Is given up when whoever waits stops waiting, for whatever reason.
struct InFlightGuard<'a>(&'a AtomicUsize);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
