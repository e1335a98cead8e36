//! Instances that are killed while they count and close periods.

use super::kit::{by, config, map, sum};
use crate::kit::Client;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use std::time::Duration;
use tidegate_testkit::redis::Server;
use tokio::time::{Instant, sleep_until};

/// The number of times each instance is killed.
const LIVES: u64 = 4;

/// The requests during one run of an instance, under a separate address.
#[derive(Clone)]
struct InstanceRun {
    address: String,
    /// The instant of each response.
    answered: Vec<Instant>,
    /// The end of the requests; the instance is killed right after.
    killed: Instant,
    /// The lateness of a timer: other events may be late by as much.
    late: Duration,
}

impl InstanceRun {
    fn sent(&self) -> u64 {
        self.answered.len() as u64
    }

    /// Returns the number of requests in the last second, which may not have been sent to Redis.
    fn recent(&self) -> u64 {
        let window = Duration::from_secs(1) + 2 * self.late;
        let is_recent = |at: &&Instant| self.killed.duration_since(**at) <= window;
        self.answered.iter().filter(is_recent).count() as u64
    }
}

/// Sends `times` requests, one after the other, a millisecond apart.
async fn ask(process: &mut Process, address: &str, times: u64) -> InstanceRun {
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
    InstanceRun {
        address: address.to_owned(),
        answered,
        killed: Instant::now(),
        late,
    }
}

/// Runs one instance several times, each killed after another number of requests.
async fn lives(file: &str, nth: u64) -> Vec<InstanceRun> {
    let mut lives = Vec::new();
    // Pseudo-random numbers that are unrelated to periods.
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
async fn a_killed_instance_loses_a_second_of_counts_and_doubles_none() {
    let server = Server::start();
    let folder = Folder::make();
    // Banned addresses are counted too.
    let more = "threshold: 100, count_banned: true, ban: { guard: blacklist, for: 1h }";
    let file = folder.write("tidegate.yaml", config(&server.url(), more));
    let (first, second, third) = tokio::join!(lives(&file, 0), lives(&file, 1), lives(&file, 2));
    let all = [first, second, third].concat();
    // A regular shutdown loses nothing.
    let mut last = Process::start(tidegate(&["serve", "--config", &file]));
    let stopped = ask(&mut last, "203.0.113.1", 300).await;
    last.signal("TERM").await;
    assert!(last.ended().await.status.success());

    let counted = map(&server, "tidegate:addresses:total");
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
    let state = map_of_texts(&server, "{tidegate:addresses:period}:period");
    let figure = |name: &str| {
        let found = state.iter().find(|(field, _)| field == name);
        found.map_or(0, |(_, value)| value.parse::<u64>().unwrap())
    };
    assert!(figure("closed") > 0, "{state:?}");
    // Counts of unfinished periods are in the open or in the closing map.
    let [open, half_way, total] = [
        "tidegate:addresses:period",
        "{tidegate:addresses:period}:closing",
        "tidegate:addresses:total",
    ]
    .map(|name| sum(&server, name));
    let of_periods = figure("counted") + open + half_way;
    // The two maps may be in two slots, so a batch takes two steps. An instance that is killed just
    // between them, which almost never happens, leaves them different by that batch, and by nothing
    // else.
    let batch = all
        .iter()
        .map(InstanceRun::recent)
        .max()
        .unwrap_or_default();
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
