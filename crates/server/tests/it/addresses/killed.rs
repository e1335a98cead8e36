//! Instances that are killed while they count and close periods.

use super::kit::{by, config, map, sum};
use crate::kit::Client;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use std::time::Duration;
use tidegate_testkit::redis::Server;
use tokio::time::{Instant, sleep_until};

/// How often each instance is killed.
const LIVES: u64 = 4;

/// What one life of an instance was asked, under an address of its own.
#[derive(Clone)]
struct Life {
    address: String,
    /// When each request was answered.
    answered: Vec<Instant>,
    /// When it was asked no more; it is killed right after.
    killed: Instant,
    /// By how much a timer was late: so much later than it should, anything may happen.
    late: Duration,
}

impl Life {
    fn sent(&self) -> u64 {
        self.answered.len() as u64
    }

    /// What was asked in the last second, which may not have been sent.
    fn recent(&self) -> u64 {
        let window = Duration::from_secs(1) + 2 * self.late;
        let is_recent = |at: &&Instant| self.killed.duration_since(**at) <= window;
        self.answered.iter().filter(is_recent).count() as u64
    }
}

/// Asks `times` times, one after the other, a millisecond apart.
async fn ask(process: &mut Process, address: &str, times: u64) -> Life {
    let mut client = Client::connect(process.address("http").await).await;
    let mut answered = Vec::new();
    let mut late = Duration::ZERO;
    for _ in 0..times {
        assert_eq!(client.post(&by(address)).await.status, 200);
        answered.push(Instant::now());
        let due = Instant::now() + Duration::from_millis(1);
        sleep_until(due).await;
        late = late.max(due.elapsed());
    }
    Life {
        address: address.to_owned(),
        answered,
        killed: Instant::now(),
        late,
    }
}

/// Lives of one instance, each ended without a word after another number of requests.
async fn lives(file: &str, nth: u64) -> Vec<Life> {
    let mut lives = Vec::new();
    // Any numbers will do that have nothing to do with periods.
    let mut chance = 0x9E37_79B9_u64.wrapping_mul(nth + 1);
    for life in 0..LIVES {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(nth);
        let mut process = Process::start(tidegate(&["serve", "--config", file]));
        let times = 200 + (chance >> 33) % 1_200;
        let address = format!("198.51.{nth}.{life}");
        let life = ask(&mut process, &address, times).await;
        process.signal("KILL").await;
        process.ended().await;
        lives.push(life);
    }
    lives
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_loses_a_second_and_nothing_counts_twice() {
    let server = Server::start();
    let folder = Folder::make();
    // They are banned, too, and go on.
    let more = "threshold: 100, count_banned: true, ban: { guard: blacklist, for: 1h }";
    let file = folder.write("tidegate.yaml", config(&server.url(), more));
    let (first, second, third) = tokio::join!(lives(&file, 0), lives(&file, 1), lives(&file, 2));
    let all = [first, second, third].concat();
    // One that is told to stop loses nothing.
    let mut last = Process::start(tidegate(&["serve", "--config", &file]));
    let stopped = ask(&mut last, "203.0.113.1", 300).await;
    last.signal("TERM").await;
    assert!(last.ended().await.status.success());

    let counted = map(&server, "AllIPsMap");
    assert_eq!(counted[&stopped.address], stopped.sent());
    for life in &all {
        let acknowledged = counted.get(&life.address).copied().unwrap_or_default();
        let (sent, recent) = (life.sent(), life.recent());
        assert!(acknowledged <= sent, "{}: counted twice", life.address);
        assert!(
            sent - acknowledged <= recent,
            "{}: {sent} sent, {acknowledged} counted, {recent} in the last second",
            life.address
        );
    }
    let state = map_of_texts(&server, "{CurrentPeriodMap}:period");
    let figure = |name: &str| {
        let found = state.iter().find(|(field, _)| field == name);
        found.map_or(0, |(_, value)| value.parse::<u64>().unwrap())
    };
    assert!(figure("closed") > 0, "{state:?}");
    // Whatever of a period is not closed yet is open, or half way.
    let [open, half_way, total] = [
        "CurrentPeriodMap",
        "{CurrentPeriodMap}:closing",
        "AllIPsMap",
    ]
    .map(|name| sum(&server, name));
    let of_periods = figure("counted") + open + half_way;
    // The maps may lie in two slots, so a batch is two steps. Whoever is killed just between them, which
    // nearly never happens, leaves them apart by that batch, and by nothing else.
    let batch = all.iter().map(Life::recent).max().unwrap_or_default();
    assert!(
        of_periods.abs_diff(total) <= batch,
        "{of_periods} in periods, {total} in all, {batch} in a batch"
    );
    let (sent, recent) = all
        .iter()
        .fold((stopped.sent(), 0), |(sent, recent), life| {
            (sent + life.sent(), recent + life.recent())
        });
    assert!(of_periods <= sent && of_periods + recent >= sent);
}

fn map_of_texts(server: &Server, name: &str) -> Vec<(String, String)> {
    let words = server.command(&["HGETALL", name]).texts();
    let pairs = words.chunks_exact(2);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect()
}
