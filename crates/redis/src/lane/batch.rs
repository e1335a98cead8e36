//! One trip to Redis: what is asked, sending it, and handing out the answers.

use super::general::decide;
use super::waiter::{Answer, Asker, Waiter};
use super::{CALL_KEYS_MAX, CALL_REQUESTS_MAX, CALL_WEIGHT_MAX, REPEAT_WEIGHT};
use crate::connection::Repeat;
use crate::error::CallError;
use crate::general::weight;
use crate::request::{Key, Request, RequestOp};
use crate::script::Script;
use crate::shared::Shared;
use crate::simple::{self, Entries};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use redis::{Cmd, Value};
use std::future::ready;
use std::hash::BuildHasher;
use std::pin::pin;
use tidegate_core::{Mode, Op, StoreError};
use tokio::time::{Instant, sleep_until};

/// Requests that travel together: the simple ones in one call, the others in one more.
///
/// Which of two calls under way comes first, nobody knows. So what means the same bucket goes by one of
/// them, in order, or by the second once the first is back.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// All of them, oldest first.
    requests: Vec<Request>,
    /// Who waits for each; `None` once answered.
    askers: Vec<Option<Asker>>,
    simple: Entries,
    /// Which of `requests` go by the general script.
    general: Vec<usize>,
    general_weight: u32,
    general_keys: usize,
    general_buckets: Buckets,
    /// Whether one of these means a bucket that a simple one meant before.
    is_second: bool,
    /// Whether everything goes by the general script, over the open layout.
    is_open: bool,
}

impl Batch {
    /// An empty one; over the open layout everything in it goes by the general script.
    pub(super) fn new(is_open: bool) -> Self {
        Self {
            is_open,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether `waiter` may travel too. The first may, whatever it asks.
    pub(super) fn has_room(&self, waiter: &Waiter) -> bool {
        if self.is_empty() {
            return true;
        }
        let keys = self.general_keys.saturating_add(waiter.request.keys.len());
        let weight = self.weight().saturating_add(waiter.weight);
        weight <= CALL_WEIGHT_MAX
            && self.requests.len() < CALL_REQUESTS_MAX
            && keys <= CALL_KEYS_MAX
    }

    fn weight(&self) -> u32 {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let keys = number(self.simple.len()).saturating_mul(simple::KEY_WEIGHT);
        let runs = number(self.simple.runs()).saturating_mul(REPEAT_WEIGHT);
        keys.saturating_add(runs)
            .saturating_add(self.general_weight)
    }

    /// Whether anybody here means a bucket that `request` means too.
    pub(super) fn shares_bucket(&mut self, request: &Request) -> bool {
        self.is_general(request) || self.is_simple(request)
    }

    /// Whether one that goes by the general script does.
    fn is_general(&mut self, request: &Request) -> bool {
        let (buckets, general) = (&mut self.general_buckets, &self.general);
        let others = general.iter().filter_map(|at| self.requests.get(*at));
        !general.is_empty() && buckets.of(others).any_of(request)
    }

    /// Whether a simple one does.
    fn is_simple(&self, request: &Request) -> bool {
        !self.simple.is_empty() && request.keys.iter().any(|key| self.simple.has(key))
    }

    pub(super) fn add(&mut self, waiter: Waiter) {
        let place = self.requests.len();
        if !self.add_simple(&waiter.request, place) {
            self.is_second = self.is_second || self.is_simple(&waiter.request);
            let weight = if waiter.is_repeat && simple::only_take(&waiter.request).is_some() {
                // It was weighed as one of many that the simple script does in one go, and goes by the other.
                waiter.weight.max(weight(&waiter.request))
            } else {
                waiter.weight
            };
            self.general_weight = self.general_weight.saturating_add(weight);
            self.general_keys = self.general_keys.saturating_add(waiter.request.keys.len());
            self.general.push(place);
        }
        self.requests.push(waiter.request);
        self.askers.push(Some(waiter.asker));
    }

    fn add_simple(&mut self, request: &Request, place: usize) -> bool {
        let (Some((quota, cost)), Some(key)) = (simple::only_take(request), request.keys.first())
        else {
            return false;
        };
        if self.is_open || self.is_general(request) {
            return false;
        }
        self.simple.add(key, quota, cost, place)
    }

    /// Sends what is to be sent, then hands out `earlier`, the answers of the trip before: so Redis
    /// has work while those who get them think of something new. Those whose time is up before it
    /// comes back are told so; the others' answers are brought back.
    pub(super) async fn run(self, shared: &Shared, slot: u16, earlier: Answers) -> Answers {
        let Self {
            requests,
            askers,
            mut simple,
            general,
            is_second,
            ..
        } = self;
        let mut askers = Askers::new(askers);
        let Some(latest) = askers.latest() else {
            earlier.hand_out();
            return askers.answers;
        };
        let sent = Instant::now();
        let program = (!simple.is_empty()).then(|| simple.encode());
        let simple_command = program.map(|program| {
            let keys = simple.iter().map(|entry| &entry.key);
            shared.command(&shared.scripts.simple, keys, &program)
        });
        let others: Vec<&Request> = general.iter().filter_map(|at| requests.get(*at)).collect();
        let call = (!others.is_empty()).then(|| shared.general(&others));
        let (call, general_command) = call.unzip();
        let trip = |script, command, repeat| Trip {
            slot,
            script,
            command,
            repeat,
            deadline: latest,
        };
        let simple_trip = trip(&shared.scripts.simple, simple_command, Repeat::Consume);
        let general_trip = trip(&shared.scripts.general, general_command, repeat(&others));
        let mut calls = pin!(async {
            if is_second {
                let simple_reply = simple_trip.send(shared).await;
                let sent = Instant::now();
                return (simple_reply, general_trip.send(shared).await, sent);
            }
            let (simple, general) =
                tokio::join!(simple_trip.send(shared), general_trip.send(shared));
            (simple, general, sent)
        });
        let mut earlier = Some(earlier);
        let (simple_reply, general_reply, general_sent) = loop {
            tokio::select! {
                biased;
                replies = &mut calls => break replies,
                // The calls are under way.
                () = ready(()), if earlier.is_some() => {
                    earlier.take().map(Answers::hand_out).unwrap_or_default();
                }
                () = sleep_until(askers.earliest().unwrap_or(latest)), if earlier.is_none() => {
                    if askers.give_up(Instant::now(), shared) {
                        return askers.answers;
                    }
                }
            }
        };
        earlier.map(Answers::hand_out).unwrap_or_default();
        if let Some(reply) = simple_reply {
            simple::decide(shared, &simple, reply, (&mut askers, sent));
        }
        if let (Some(reply), Some(call)) = (general_reply, &call) {
            let places = (general.as_slice(), others.as_slice());
            decide(shared, places, (call, reply), (&mut askers, general_sent));
        }
        shared.stats.decisions.add(askers.answers.decided());
        askers.answers
    }
}

/// What the requests of a call mean, by a hash: of two buckets that fall together, one goes the longer
/// way and no harm is done. Looked up only where simple requests travel with others.
#[derive(Debug, Default)]
struct Buckets {
    hashes: HashSet<u64, RandomState>,
    /// How many requests are in here so far.
    requests: usize,
}

impl Buckets {
    /// With what all of `requests` mean, to which there may have come more.
    fn of<'r>(&mut self, requests: impl Iterator<Item = &'r Request>) -> &Self {
        for request in requests.skip(self.requests) {
            self.requests = self.requests.saturating_add(1);
            for key in &request.keys {
                let hash = self.hash(key);
                self.hashes.insert(hash);
            }
        }
        self
    }

    fn any_of(&self, request: &Request) -> bool {
        let mut keys = request.keys.iter();
        keys.any(|key| self.hashes.contains(&self.hash(key)))
    }

    fn hash(&self, key: &Key) -> u64 {
        self.hashes.hasher().hash_one(key.as_slice())
    }
}

/// A call, if there is anything to call for.
struct Trip<'a> {
    slot: u16,
    script: &'a Script,
    command: Option<Cmd>,
    repeat: Repeat,
    deadline: Instant,
}

impl Trip<'_> {
    async fn send(&self, shared: &Shared) -> Option<Result<Value, CallError>> {
        let command = self.command.as_ref()?;
        shared.stats.calls.add(1);
        let connection = &shared.connection;
        let run = connection.run(self.slot, self.script, command, self.repeat, self.deadline);
        Some(run.await)
    }
}

/// What is given back must not be given back twice, not even together with what may be sent again.
pub(super) fn repeat(requests: &[&Request]) -> Repeat {
    let may_block = |request: &&Request| {
        let mut asks = request.asks.iter();
        asks.any(|ask| matches!(ask.op, RequestOp::Engine(Op::Block)))
    };
    // Nor may a request that has passed be sent again where it would then be refused, and blocked.
    if requests.iter().any(|request| may_give_twice(request)) || requests.iter().any(may_block) {
        Repeat::Refund
    } else {
        Repeat::Consume
    }
}

/// Whether a request that is carried out twice may give back twice. What is returned beside a take
/// that only one can win comes back once, however often it is sent: the second time that take
/// refuses.
fn may_give_twice(request: &Request) -> bool {
    let won_once = request.asks.iter().any(|ask| {
        let is_won_once = |cost: u64| cost > ask.quota.capacity() / 2;
        ask.mode == Mode::Enforce
            && matches!(ask.op, RequestOp::Engine(Op::Take(cost)) if is_won_once(cost))
    });
    request.asks.iter().any(|ask| match ask.op {
        RequestOp::Engine(Op::Return { .. }) => !won_once,
        RequestOp::Engine(op) => op.receipt().is_some(),
        RequestOp::Drop | RequestOp::Inspect => false,
    })
}

/// Those who wait for a trip to come back, oldest first.
pub(crate) struct Askers {
    waiting: Vec<Option<Asker>>,
    answers: Answers,
}

/// Answers that have not been handed out yet.
#[derive(Debug, Default)]
pub(crate) struct Answers(Vec<(Asker, Result<Answer, StoreError>)>);

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are decisions, and not failures.
    fn decided(&self) -> u64 {
        let decided = self.0.iter().filter(|(_, answer)| answer.is_ok());
        u64::try_from(decided.count()).unwrap_or(u64::MAX)
    }

    /// Hands the answers over. Whoever has stopped waiting does not miss theirs.
    pub(super) fn hand_out(self) {
        for (asker, answer) in self.0 {
            asker.tell(answer);
        }
    }
}

impl Askers {
    fn new(waiting: Vec<Option<Asker>>) -> Self {
        let answers = Answers(Vec::with_capacity(waiting.len()));
        Self { waiting, answers }
    }

    /// The answer of the one at `place`, unless there is one.
    pub(crate) fn tell(&mut self, place: usize, answer: Result<Answer, StoreError>) {
        if let Some(asker) = self.waiting.get_mut(place).and_then(Option::take) {
            self.answers.0.push((asker, answer));
        }
    }

    /// Whether the one at `place` wants to know what was there before.
    pub(crate) fn wants_before(&self, place: usize) -> bool {
        matches!(self.waiting.get(place), Some(Some(asker)) if asker.wants_before)
    }

    fn waiting(&self) -> impl Iterator<Item = &Asker> {
        self.waiting.iter().flatten()
    }

    fn latest(&self) -> Option<Instant> {
        self.waiting().map(|asker| asker.deadline).max()
    }

    fn earliest(&self) -> Option<Instant> {
        self.waiting().map(|asker| asker.deadline).min()
    }

    /// Tells those whose time is up, and whether nobody is left.
    fn give_up(&mut self, now: Instant, shared: &Shared) -> bool {
        let mut left = false;
        for asker in &mut self.waiting {
            match asker.take_if(|asker| asker.deadline <= now) {
                Some(asker) => asker.tell(Err(shared.too_late())),
                None => left |= asker.is_some(),
            }
        }
        !left
    }
}
