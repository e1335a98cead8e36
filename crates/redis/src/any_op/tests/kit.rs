//! A server, a script, a call.

use crate::any_op::{ReplayedRequest, ScriptCall, answer, encode};
use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use crate::script::{self, ScriptClock};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_core::{LimitMode, Op, Quota, StoreError};
use tidegate_redis_client::Script;
use tidegate_redis_client::protocol;
use tidegate_redis_client::protocol::{Cmd, Connection, Pipeline, Value};
use tidegate_testkit::redis::Server;

/// The server of all tests in this binary that do not change its settings.
static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

/// A connection with the script loaded.
pub(super) struct Bench {
    pub(super) connection: Connection,
    script: Script,
}

pub(super) type Answers = Vec<Result<ReplayedRequest, StoreError>>;

impl Bench {
    pub(super) fn new(clock: ScriptClock) -> Self {
        Self::on(&SERVER, clock)
    }

    pub(super) fn on(server: &Server, clock: ScriptClock) -> Self {
        let script = script::general(clock);
        let client = protocol::Client::open(server.url()).expect("a valid URL");
        let mut connection = client.get_connection().expect("the server is up");
        let sha: String = protocol::cmd("SCRIPT")
            .arg("LOAD")
            .arg(script.text())
            .query(&mut connection)
            .expect("the script compiles");
        assert_eq!(sha, script.sha());
        Self { connection, script }
    }

    pub(super) fn command(&self, call: &ScriptCall, now_us: u64) -> Cmd {
        let mut command = protocol::cmd("EVALSHA");
        command.arg(self.script.sha()).arg(call.keys.len());
        for key in &call.keys {
            command.arg(key.as_slice());
        }
        command.arg(call.program.as_slice()).arg(now_us);
        command
    }

    pub(super) fn try_ask(
        &mut self,
        requests: &[&SlotAsks],
        now_us: u64,
    ) -> protocol::RedisResult<Answers> {
        let call = encode(requests);
        let reply: Value = self.command(&call, now_us).query(&mut self.connection)?;
        Ok(answer(requests, &call, &reply, |_| false).expect("a well-formed reply"))
    }

    pub(super) fn ask(&mut self, requests: &[&SlotAsks], now_us: u64) -> Answers {
        self.try_ask(requests, now_us).expect("an answer")
    }

    pub(super) fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        protocol::cmd("GET")
            .arg(key)
            .query(&mut self.connection)
            .expect("a string")
    }

    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) {
        protocol::cmd("SET")
            .arg(key)
            .arg(value)
            .exec(&mut self.connection)
            .expect("set");
    }

    pub(super) fn run(&mut self, pipeline: &Pipeline) -> Vec<Value> {
        pipeline.query(&mut self.connection).expect("answers")
    }
}

/// Returns a key that no other test uses.
pub(super) fn new_key() -> RedisKey {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    RedisKey::from_slice(format!("key:{}", NEXT.fetch_add(1, Relaxed)).as_bytes())
}

pub(super) fn ask_of(quota: &Quota, op: Op) -> OwnedAsk {
    OwnedAsk {
        key: 0,
        quota: *quota,
        op: RequestOp::Engine(op),
        limit: 0,
        mode: LimitMode::Enforce,
    }
}

/// Returns one ask for one key.
pub(super) fn request(key: &RedisKey, quota: &Quota, op: Op) -> SlotAsks {
    let mut request = SlotAsks::default();
    request.keys.push(key.clone());
    request.asks.push(ask_of(quota, op));
    request
}

/// Returns asks that take one unit from each band.
pub(super) fn take_each(key: &RedisKey, quotas: &[Quota]) -> SlotAsks {
    let mut request = SlotAsks::default();
    request.keys.push(key.clone());
    for quota in quotas {
        request.asks.push(ask_of(quota, Op::Take(1)));
    }
    request
}
