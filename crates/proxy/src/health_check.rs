//! Active health checks of one upstream.
//!
//! Active checks find a dead upstream without requests of clients, and a recovered one without risking
//! any. They add to ejection, which counts failed requests. An upstream that either of them takes out
//! gets requests only if all upstreams are out. A check has its own connection, so that it fails
//! neither because all permits are taken nor because of a stale connection.

use super::upstream_health::UpstreamHealth;
use std::fmt::{self, Display};
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::route::HealthCheck;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// Checks an upstream by `probe` at the interval of `checks`, give or take a tenth, so that many gateways do
/// not check at once; runs until `stop` is ready. The upstream keeps its last known state, which at first is
/// healthy, until enough consecutive checks contradict it.
///
/// `stop` has priority: when it is ready, a check in flight is dropped, and the state stays as it is.
pub async fn watch<P, F, E>(
    standing: Arc<UpstreamHealth>,
    checks: &HealthCheck,
    probe: P,
    stop: impl Future<Output = ()>,
) where
    P: Fn() -> F,
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    standing.begin_checks();
    let look_after = async {
        // Start soon, to find a dead upstream quickly, but not at once, because there may be hundreds.
        sleep(random_part(checks.interval / 10)).await;
        let mut streak = Streak::default();
        loop {
            match timeout(checks.timeout, probe()).await {
                Ok(Ok(())) => streak.note_good(&standing, checks),
                Ok(Err(error)) => streak.note_bad(&standing, checks, &error),
                Err(_) => streak.note_bad(&standing, checks, &NoAnswer(checks.timeout)),
            }
            sleep(jittered(checks.interval)).await;
        }
    };
    let stop = pin!(stop);
    tokio::select! {
        biased;
        () = stop => {}
        () = look_after => {}
    }
}

/// The number of consecutive checks that contradict the upstream's present state.
#[derive(Debug, Default)]
struct Streak {
    good: u32,
    bad: u32,
}

impl Streak {
    fn note_good(&mut self, standing: &UpstreamHealth, checks: &HealthCheck) {
        self.bad = 0;
        self.good = self.good.saturating_add(1);
        if self.good >= checks.healthy && standing.set_healthy(true) {
            info!(
                event = "upstream_healthy",
                route = standing.route(),
                upstream = standing.upstream(),
                checks = self.good,
                "upstream healthy again"
            );
        }
    }

    fn note_bad(&mut self, standing: &UpstreamHealth, checks: &HealthCheck, why: &dyn Display) {
        self.good = 0;
        self.bad = self.bad.saturating_add(1);
        if self.bad >= checks.unhealthy && standing.set_healthy(false) {
            warn!(
                event = "upstream_unhealthy",
                route = standing.route(),
                upstream = standing.upstream(),
                checks = self.bad,
                reason = %why,
                "upstream unhealthy"
            );
        }
    }
}

struct NoAnswer(Duration);

impl Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no response within {:?}", self.0)
    }
}

/// Returns 90 % to 110 % of `pause`.
fn jittered(pause: Duration) -> Duration {
    let tenth = pause / 10;
    let least = pause.saturating_sub(tenth);
    least.saturating_add(random_part(tenth.saturating_mul(2)))
}

/// Returns a random duration from zero to `whole`.
fn random_part(whole: Duration) -> Duration {
    const PARTS: u32 = 1_024;
    // Each `RandomState` has different keys, derived from the system's randomness.
    let random = RandomState::new().build_hasher().finish();
    let part = u32::try_from(random % u64::from(PARTS + 1)).unwrap_or(0);
    (whole / PARTS).saturating_mul(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    const CHECKS: HealthCheck = HealthCheck {
        path: String::new(),
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        healthy: 2,
        unhealthy: 3,
    };

    fn upstream_health() -> Arc<UpstreamHealth> {
        Arc::new(UpstreamHealth::new("orders", "127.0.0.1:9001", None))
    }

    /// Runs checks with the results of `script`, then one that hangs. Returns the upstream's state before
    /// each check and at the end.
    async fn seen(standing: &Arc<UpstreamHealth>, script: &[bool]) -> Vec<bool> {
        let (all_asked, done) = oneshot::channel();
        let all_asked = parking_lot::Mutex::new(Some(all_asked));
        let seen = parking_lot::Mutex::new(Vec::new());
        let probe = async || {
            let nth = seen.lock().len();
            seen.lock().push(standing.is_healthy());
            match script.get(nth) {
                Some(true) => Ok(()),
                Some(false) => Err("refused"),
                None => {
                    let all_asked = all_asked.lock().take();
                    all_asked.unwrap().send(()).unwrap();
                    pending().await
                }
            }
        };
        let stop = async { done.await.unwrap() };
        watch(Arc::clone(standing), &CHECKS, probe, stop).await;
        seen.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn health_changes_only_after_enough_consecutive_checks() {
        let standing = upstream_health();
        let script = [
            false, false, true, false, false, false, true, false, true, true,
        ];
        let (t, f) = (true, false);
        assert_eq!(
            seen(&standing, &script).await,
            [t, t, t, t, t, t, f, f, f, f, t]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_unhealthy_upstream_stays_so_after_a_reload_until_checked() {
        let standing = upstream_health();
        standing.set_healthy(false);
        assert_eq!(seen(&standing, &[true, true]).await, [false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_that_times_out_fails() {
        let standing = upstream_health();
        let asked = AtomicU32::new(0);
        let probe = || {
            asked.fetch_add(1, Relaxed);
            pending::<Result<(), &str>>()
        };
        // The third check is over after 14.5 seconds at most, and the fourth begins after 16.5 at least.
        let stop = sleep(Duration::from_millis(14_600));
        watch(Arc::clone(&standing), &CHECKS, probe, stop).await;
        assert_eq!(asked.load(Relaxed), 3);
        assert!(!standing.is_healthy());
    }

    #[tokio::test(start_paused = true)]
    async fn health_checks_stop_even_during_a_check() {
        let standing = upstream_health();
        let began = AtomicBool::new(false);
        let checks = HealthCheck {
            timeout: Duration::from_hours(1),
            ..CHECKS
        };
        let probe = || {
            began.store(true, Relaxed);
            pending::<Result<(), &str>>()
        };
        let start = Instant::now();
        watch(standing, &checks, probe, sleep(CHECKS.interval)).await;
        assert!(began.load(Relaxed));
        assert!(start.elapsed() < CHECKS.interval * 2);
    }

    #[test]
    fn pauses_differ_by_at_most_a_tenth() {
        let pauses: Vec<_> = (0..100).map(|_| jittered(CHECKS.interval)).collect();
        let (least, most) = (CHECKS.interval * 9 / 10, CHECKS.interval * 11 / 10);
        assert!(pauses.iter().all(|it| (least..=most).contains(it)));
        assert!(pauses.iter().any(|it| *it != pauses[0]));
    }
}
