//! `kill -9` in a loop: never more than the stated loss, never a fresh budget.

use super::{Home, POLICIES, RunningProgram};
use crate::kit::in_time;
use std::env;
use std::time::Duration;
use tokio::time::Instant;

/// Kills; `TIDEGATE_SNAPSHOT_KILLS` for more of them.
fn kills() -> u32 {
    let variable = env::vars().find(|(name, _)| name == "TIDEGATE_SNAPSHOT_KILLS");
    variable.map_or(6, |(_, count)| count.parse().unwrap())
}

const AMOUNT: u64 = 1_000_000;

/// Policies of one limit each: a fixed window and a window of the calendar, which are small numbers in the table,
/// and a record.
const KINDS: [&str; 3] = ["plain", "budget", "history"];

fn body(policy: &str, cost: u64) -> String {
    format!(r#"{{"policy":"{policy}","user":"ann","cost":{cost}}}"#)
}

async fn used(running: &RunningProgram) -> [u64; KINDS.len()] {
    let mut used = [0; KINDS.len()];
    for (policy, used) in KINDS.into_iter().zip(&mut used) {
        *used = AMOUNT - running.remaining(&body(policy, 0)).await;
    }
    used
}

/// A client asks without a pause, and notes when each charge was answered. After a kill, what is left
/// shows how many charges were lost: none that was answered before the instant that
/// `tidegate_snapshot_age_seconds` named last. The interval of writes bounds that age
/// (`SnapshotKeeper::pause`); a machine under load writes later.
#[tokio::test]
async fn a_kill_loses_no_charge_older_than_the_age_of_the_snapshot() {
    let home = Home::new(POLICIES, "100ms");
    let bodies = KINDS.map(|policy| body(policy, 1));
    let mut used_before = [0; KINDS.len()];
    for round in 0..kills() {
        let running = home.start().await;
        assert_eq!(
            used(&running).await,
            used_before,
            "round {round}: a clean stop"
        );
        // Of different lengths, so that kills hit all parts of a write.
        let span = Duration::from_millis(250 + u64::from(round % 7) * 30);
        let mut answered: [Vec<Instant>; KINDS.len()] = Default::default();
        let start = Instant::now();
        let mut client = crate::kit::Client::connect(running.http).await;
        while start.elapsed() < span {
            for (body, answered) in bodies.iter().zip(&mut answered) {
                assert!(client.post(body).await.is_allowed());
                answered.push(Instant::now());
            }
        }
        let asked = Instant::now();
        let age = running.metric("tidegate_snapshot_age_seconds ").await;
        let covered = asked.checked_sub(Duration::from_secs_f64(age)).unwrap();
        running.kill().await;

        let next = in_time("a start after a kill", home.start()).await;
        let used = used(&next).await;
        for ((policy, answered), (used, before)) in KINDS
            .iter()
            .zip(&answered)
            .zip(used.into_iter().zip(used_before))
        {
            let made = u64::try_from(answered.len()).unwrap();
            assert!(
                (before..=before + made).contains(&used),
                "round {round}, {policy}: {used} used, {before} before, {made} made"
            );
            let kept = usize::try_from(used - before).unwrap();
            if let Some(first_lost) = answered.get(kept) {
                assert!(
                    *first_lost >= covered,
                    "round {round}, {policy}: a charge was lost that was made {:?} before the age",
                    covered.duration_since(*first_lost)
                );
            }
        }
        next.stop().await;
        used_before = used;
    }
    assert!(
        used_before.iter().all(|used| *used > 0),
        "some of the charges outlived their processes"
    );
}
