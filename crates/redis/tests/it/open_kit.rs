//! A server of one's own, a store over the open layout, and what another system would write there.

use crate::world::{self, World};
use tidegate_core::{
    Ask, Bucket, BucketState, Op, Outcome, Quota, QuotaSpec, Reply, Store, StoreError, Timestamp,
    step,
};
use tidegate_redis::{KeyPiece, Layout, OpenLayout, OpenLimit, RedisOptions, RedisStore};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::{RespReply as Value, Server, audit};

/// Keys as the documents have them are the same in every test, so each has its own server.
pub(crate) struct Open {
    pub(crate) server: Server,
    pub(crate) world: World,
}

impl Open {
    /// Virtual time, from 1,700,000,000 s on.
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

    /// What a request is answered that may fail.
    pub(crate) fn try_take(&self, bucket: &str, quota: &Quota) -> Result<Outcome, StoreError> {
        let ask = Ask::take(bucket.as_bytes(), quota, 1);
        let reply = world::runtime().block_on(self.world.store.decide(&[ask]))?;
        Ok(*reply.outcomes.first().expect("one for each ask"))
    }

    pub(crate) fn remaining(&self, bucket: &str, quota: &Quota) -> u64 {
        self.take(bucket, quota, 0).remaining
    }

    /// A command in words with blanks between.
    pub(crate) fn redis(&self, command: &str) -> Value {
        let words: Vec<&str> = command.split(' ').collect();
        self.server.command(&words).good()
    }

    pub(crate) fn texts(&self, command: &str) -> Vec<String> {
        self.redis(command).texts()
    }

    /// Nothing stays forever.
    pub(crate) fn audit(&self) {
        assert_eq!(audit(&mut self.server.client(), &[]), Vec::<String>::new());
    }
}

/// A store that goes by the server's clock.
pub(crate) fn by_the_clock(server: &Server, layout: OpenLayout) -> RedisStore {
    let options = RedisOptions::default()
        .layout(Layout::Open(layout))
        .deny_cache(0);
    let connect = RedisStore::connect(world::standalone(server), options);
    world::runtime().block_on(connect).expect("it is there")
}

/// A layout of one limit, `name`, whose keys are named by a template as a configuration has it.
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
    spec.build().expect("it fits")
}

/// Numbers that look random and are the same in every run.
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

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let sides = u64::try_from(of.len()).expect("few");
        let at = usize::try_from(self.roll(sides)).expect("few");
        *of.get(at).expect("below its length")
    }
}

/// The engine alone.
pub(crate) struct Engine {
    pub(crate) quota: Quota,
    pub(crate) bucket: Bucket,
}

impl Engine {
    pub(crate) fn decide(&mut self, op: Op, now: Timestamp) -> Reply {
        if self.bucket.fresh_at(&self.quota) <= now {
            self.bucket = Bucket::new(&self.quota);
        }
        self.bucket.settle(&self.quota, now);
        let ask = Ask {
            op,
            ..Ask::look(b"", &self.quota)
        };
        let buckets = std::slice::from_mut(&mut self.bucket);
        step::decide(&[ask], &[0], buckets, now)
    }

    /// What a store keeps of it.
    pub(crate) fn kept(&self, now: Timestamp) -> Option<Bucket> {
        (self.bucket.fresh_at(&self.quota) > now).then(|| self.bucket.clone())
    }
}
