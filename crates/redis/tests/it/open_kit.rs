//! A separate server, a store with the open layout, and values written by another system.

use crate::world::{self, World};
use tidegate_core::{
    Ask, Bucket, BucketState, Op, Outcome, Quota, QuotaSpec, Reply, Store, StoreError, Timestamp,
    step,
};
use tidegate_redis::{KeyPiece, Layout, OpenLayout, OpenLimit, RedisBuckets, RedisOptions};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::{RespReply as Value, Server, audit};

/// Documented keys are the same in every test, so each test has a separate server.
pub(crate) struct Open {
    pub(crate) server: Server,
    pub(crate) world: World,
}

impl Open {
    /// Creates the world with virtual time, starting at 1,700,000,000 s.
    pub(crate) fn new(layout: OpenLayout) -> Self {
        let server = Server::start();
        let options = RedisOptions::default().layout(Layout::Open(layout));
        let world = World::new(world::standalone(&server), options);
        Self { server, world }
    }

    pub(crate) fn advance(&self, micros: u64) {
        self.world.advance_micros(micros);
    }

    pub(crate) fn take(&self, bucket: &str, quota: &Quota, cost: u64) -> Outcome {
        self.world
            .decide_one(Ask::take(bucket.as_bytes(), quota, cost))
    }

    /// Returns the outcome of a request, or its error.
    pub(crate) fn try_take(&self, bucket: &str, quota: &Quota) -> Result<Outcome, StoreError> {
        let ask = Ask::take(bucket.as_bytes(), quota, 1);
        let reply = world::runtime().block_on(self.world.store.decide(&[ask]))?;
        Ok(*reply.outcomes.first().expect("one for each ask"))
    }

    pub(crate) fn remaining(&self, bucket: &str, quota: &Quota) -> u64 {
        self.take(bucket, quota, 0).remaining
    }

    /// Runs a command given as words separated by spaces.
    pub(crate) fn redis(&self, command: &str) -> Value {
        let words: Vec<&str> = command.split(' ').collect();
        self.server.command(&words).good()
    }

    pub(crate) fn texts(&self, command: &str) -> Vec<String> {
        self.redis(command).texts()
    }

    /// Checks that every key expires.
    pub(crate) fn audit(&self) {
        assert_eq!(audit(&mut self.server.client(), &[]), Vec::<String>::new());
    }
}

/// Returns a store with the server's clock.
pub(crate) fn by_the_clock(server: &Server, layout: OpenLayout) -> RedisBuckets {
    let options = RedisOptions::default()
        .layout(Layout::Open(layout))
        .deny_cache(0);
    let connect = RedisBuckets::connect(world::standalone(server), options);
    world::runtime()
        .block_on(connect)
        .expect("the server is up")
}

/// Returns a layout of one limit, `name`, with a key template as in a configuration.
pub(crate) fn layout(name: &str, template: &str, bands: &[(&Quota, &str)]) -> OpenLayout {
    add(OpenLayout::new(), name, template, bands)
}

pub(crate) fn add(
    layout: OpenLayout,
    name: &str,
    template: &str,
    bands: &[(&Quota, &str)],
) -> OpenLayout {
    let bands = bands
        .iter()
        .map(|(quota, label)| (quota.id(), (*label).to_owned()))
        .collect();
    let template = pieces(template);
    let literal = String::new();
    let limit = OpenLimit {
        template,
        bands,
        literal,
    };
    layout.limit(name, limit)
}

fn pieces(template: &str) -> Vec<KeyPiece> {
    let pieces = template.split_inclusive('}').flat_map(|part| {
        let (text, placeholder) = part.split_once('{').unwrap_or((part, ""));
        let placeholder = match placeholder.trim_end_matches('}') {
            "" => None,
            "policy" => Some(KeyPiece::Policy),
            "limit" => Some(KeyPiece::Limit),
            "key" => Some(KeyPiece::Key),
            "subject" => Some(KeyPiece::Subject),
            "band" => Some(KeyPiece::Band),
            label => Some(KeyPiece::Part(label.to_owned())),
        };
        let text = (!text.is_empty()).then(|| KeyPiece::Text(text.to_owned()));
        [text, placeholder]
    });
    pieces.flatten().collect()
}

pub(crate) fn built(spec: QuotaSpec<'_>) -> Quota {
    spec.build().expect("a valid quota")
}

/// Pseudo-random numbers, the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Rolls a number below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Picks one of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let sides = u64::try_from(of.len()).expect("a small count");
        let at = usize::try_from(self.roll(sides)).expect("a small count");
        *of.get(at).expect("below its length")
    }
}

/// The engine without a store.
pub(crate) struct Engine {
    pub(crate) quota: Quota,
    pub(crate) bucket: Bucket,
}

impl Engine {
    pub(crate) fn decide(&mut self, op: Op, now: Timestamp) -> Reply {
        if self.bucket.fresh_at(&self.quota) <= now {
            self.bucket = Bucket::new(&self.quota);
        }
        self.bucket.clamp_to_now(&self.quota, now);
        let ask = Ask {
            op,
            ..Ask::look(b"", &self.quota)
        };
        let buckets = std::slice::from_mut(&mut self.bucket);
        step::decide(&[ask], &[0], buckets, now)
    }

    /// Returns the bucket that a store keeps.
    pub(crate) fn kept(&self, now: Timestamp) -> Option<Bucket> {
        (self.bucket.fresh_at(&self.quota) > now).then(|| self.bucket.clone())
    }
}
