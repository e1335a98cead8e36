//! Tells the other instances that we live, and counts them.

use crate::connection::pace::{jittered, random};
use crate::connection::{Connection, Route, WeakConnection};
use crate::error::CallError;
use crate::script::Script;
use crate::typed;
use redis::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::sleep;

const EVERY: Duration = Duration::from_secs(5);
/// An instance that was not heard of for so long is gone.
const GONE_SECONDS: &str = "15";
/// The most instances that are named.
const INSTANCES_MAX: usize = 1_000;
/// The most instances seen in so many counts, ten minutes of them, is the answer: in an outage nobody
/// can count, and a count too low would let too much through. Time in which nobody could count
/// does not matter, however long: right after it, not everybody has come back yet.
const MEMORY: u64 = 120;

/// Enters us, drops those that are gone, and counts. By the server's clock. Whoever leaves enters
/// as one who was last heard of at the beginning of time: that needs no further rights.
const BEAT: &str = "\
local now = tonumber(redis.call('TIME')[1])
local gone = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[3] == 'leave' and 0 or now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - gone)
redis.call('PEXPIRE', KEYS[1], 2000 * gone)
return redis.call('ZCARD', KEYS[1])";

/// Keeps this instance in the sorted set `<prefix>instances` until it is dropped or closed.
#[derive(Debug)]
pub struct Heartbeat {
    connection: Connection,
    beat: Arc<Beat>,
    task: Option<AbortHandle>,
}

impl Heartbeat {
    /// Starts at once, and goes on every 5 s, give or take a quarter.
    pub fn start(connection: &Connection, prefix: &str) -> Self {
        let beat = Arc::new(Beat {
            script: Script::new("heartbeat", BEAT.to_owned()),
            key: format!("{prefix}instances"),
            id: format!("{:016x}{:016x}", random(), random()),
            live: Arc::new(AtomicU32::new(0)),
        });
        let task = forever(connection.downgrade(), Arc::clone(&beat));
        Self {
            connection: connection.clone(),
            beat,
            task: connection.tasks().spawn(task),
        }
    }

    /// How many instances live: the most seen in the last ten minutes in which Redis answered, at
    /// least 1.
    pub fn live(&self) -> u32 {
        self.beat.live.load(Ordering::Relaxed).max(1)
    }

    /// What this instance is called in the list.
    pub fn id(&self) -> &str {
        &self.beat.id
    }

    /// The instances that were heard of of late, this one among them.
    pub async fn instances(&self) -> Result<Vec<String>, CallError> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(&self.beat.key).arg(0).arg(INSTANCES_MAX - 1);
        let route = Route::Key(self.beat.key.as_bytes());
        let found = typed::strings(self.connection.command(route, &command).await?)?;
        let found = found
            .into_iter()
            .map(|id| String::from_utf8_lossy(&id).into_owned());
        Ok(found.collect())
    }

    /// Where that number is kept up to date; 0 while nobody knows.
    pub fn count(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.beat.live)
    }

    /// Ends it and takes us from the list.
    pub async fn close(&self) -> Result<(), CallError> {
        self.stop();
        self.beat.send(&self.connection, "leave").await.map(drop)
    }

    fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a heartbeat says, and what it has heard.
#[derive(Debug)]
struct Beat {
    script: Script,
    key: String,
    id: String,
    live: Arc<AtomicU32>,
}

impl Beat {
    /// How many there are.
    async fn send(&self, connection: &Connection, word: &str) -> Result<u32, CallError> {
        let args = [self.id.as_str(), GONE_SECONDS, word];
        let reply = connection
            .evalsha(&self.script, &[&self.key], &args)
            .await?;
        match reply {
            Value::Int(count) => Ok(u32::try_from(count).unwrap_or(1)),
            _ => Err(CallError::malformed("a count was expected")),
        }
    }
}

async fn forever(connection: WeakConnection, beat: Arc<Beat>) {
    let mut peak = Peak::default();
    // Held only while it is needed, or it would never end.
    while let Some(connection) = connection.upgrade() {
        let counted = beat.send(&connection, "stay").await;
        drop(connection);
        // If Redis is away, which others tell, what was seen before still counts.
        if let Ok(count) = counted {
            beat.live.store(peak.add(count), Ordering::Relaxed);
        }
        sleep(jittered(EVERY)).await;
    }
}

/// The highest of the last counts.
#[derive(Debug, Default)]
struct Peak {
    /// How often was counted.
    counts: u64,
    /// Falling numbers, oldest first, each with which count it was: a number is forgotten once a
    /// later one is as high.
    seen: VecDeque<(u64, u32)>,
}

impl Peak {
    fn add(&mut self, count: u32) -> u32 {
        self.counts = self.counts.saturating_add(1);
        while self.seen.back().is_some_and(|(_, old)| *old <= count) {
            self.seen.pop_back();
        }
        self.seen.push_back((self.counts, count));
        while let Some((nth, _)) = self.seen.front()
            && self.counts.saturating_sub(*nth) >= MEMORY
        {
            self.seen.pop_front();
        }
        self.seen.front().map_or(count, |(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_stays_until_as_many_counts_have_come_after_it() {
        let mut peak = Peak::default();
        assert_eq!(peak.add(3), 3);
        assert_eq!(peak.add(7), 7);
        assert_eq!(peak.add(2), 7);
        assert_eq!(peak.add(4), 7);
        for _ in 3..MEMORY {
            assert_eq!(peak.add(1), 7);
        }
        assert_eq!(peak.add(1), 4, "the seven is too old");
        assert_eq!(peak.add(1), 4);
        assert_eq!(peak.add(1), 1);
        assert_eq!(peak.add(5), 5);
    }
}
