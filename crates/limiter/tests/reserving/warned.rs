use crate::{MINUTE, ManualLimiter, config};
use std::time::Duration;
use tidegate::redis::KeyTag;
use tidegate::{Cost, Limiter, ManualClock, MemoryStore, Request, SettledReservation, Store};
use tidegate_testkit::redis::Server;

const LIMITS: &str = "
    { name: calls, key: user, rate: 100/min, algorithm: fixed-window, warn: 50% },
    { name: tokens, key: user, unit: tokens, rate: 1000/h, algorithm: fixed-window,
      overdraft: 200, warn: [80%, 100%] },
    { name: month, key: user, unit: tokens, rate: 2000/month, warn: 90% },
    { name: quiet, key: user, unit: tokens, rate: 100000/d, algorithm: fixed-window }";

/// Returns the limits, units, shares and remaining units of the warnings.
fn warned(settled: &SettledReservation) -> Vec<String> {
    let warnings = settled.warnings().iter().map(|it| {
        let unit = it.unit.as_deref().unwrap_or("requests");
        let (limit, band, key) = (&it.limit, &it.band, &it.key);
        format!(
            "{limit} {band} {key} {}% {}/{} {unit}",
            it.share, it.remaining, it.capacity
        )
    });
    warnings.collect()
}

async fn reserve<S: Store>(limiter: &Limiter<S>, tokens: u64) -> String {
    let cost = [("tokens", tokens)];
    crate::reserve(limiter, &Request::new().user("ann").cost(&cost)).await
}

async fn commit<'c, S: Store>(
    limiter: &Limiter<S>,
    id: &str,
    actual: impl Into<Cost<'c>>,
) -> Vec<String> {
    warned(&limiter.commit(id, actual).await.unwrap())
}

/// A commit beyond its estimate raised no alert.
async fn a_commit_beyond_its_estimate_warned_of_nothing<S: Store>(limiter: &Limiter<S>) {
    let (first, second) = (reserve(limiter, 300).await, reserve(limiter, 100).await);
    assert_eq!(
        commit(limiter, &first, 799 - 100).await,
        [""; 0],
        "below the share"
    );
    assert_eq!(
        commit(limiter, &second, 101).await,
        ["tokens 1000/h user:ann 80% 200/1000 tokens"]
    );
    assert_eq!(
        commit(limiter, &second, 101).await,
        [""; 0],
        "it was settled before"
    );
    // Of several shares the highest, of each band its own, and also below empty.
    let third = reserve(limiter, 0).await;
    assert_eq!(
        commit(limiter, &third, &[("tokens", 1_000), ("requests", 50)]).await,
        [
            "calls 100/min user:ann 50% 48/100 requests",
            "tokens 1000/h user:ann 100% 0/1000 tokens",
            "month 2000/month user:ann 90% 200/2000 tokens",
        ]
    );
}

#[tokio::test]
async fn a_commit_beyond_its_estimate_warns_in_memory() {
    let here = ManualLimiter::new(LIMITS);
    a_commit_beyond_its_estimate_warned_of_nothing(&here.limiter).await;
}

#[tokio::test]
async fn a_commit_beyond_its_estimate_warns_in_redis() {
    let server = Server::start();
    let settings = crate::stores::standalone(&server);
    let pair = crate::stores::in_redis(&settings, KeyTag::Subject, LIMITS).await;
    a_commit_beyond_its_estimate_warned_of_nothing(pair.of(0)).await;
}

#[tokio::test]
async fn a_refund_or_a_commit_within_the_estimate_warns_of_nothing() {
    let here = ManualLimiter::new(LIMITS);
    let id = reserve(&here.limiter, 400).await;
    // The charge of the reservation was below the share, and so is what is left of it.
    assert_eq!(commit(&here.limiter, &id, 10).await, [""; 0]);
    let id = reserve(&here.limiter, 10).await;
    assert_eq!(warned(&here.limiter.refund(&id).await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn an_excess_warns_after_the_reservation_has_expired_and_in_its_own_window_only() {
    let here = ManualLimiter::new(
        "{ name: tokens, key: user, unit: tokens, rate: 1000/h, algorithm: fixed-window, warn: 80% },
         { name: day, key: user, unit: tokens, rate: 1000/d, align: calendar, warn: 80% }",
    );
    // A minute before midnight.
    let at_ms = 1_700_000_000_000_u64;
    let to_midnight = 86_400_000 - at_ms % 86_400_000;
    here.pass(Duration::from_millis(to_midnight - 60_000));
    let id = reserve(&here.limiter, 100).await;
    here.pass(2 * MINUTE);
    // The day is over: its part settles nothing, and the outcomes of the other parts keep their places.
    assert_eq!(
        commit(&here.limiter, &id, 900).await,
        ["tokens 1000/h user:ann 80% 100/1000 tokens"]
    );
}

#[tokio::test]
async fn a_warning_has_the_words_of_the_time_of_the_reservation_and_no_secret() {
    let limits = "{ name: tokens, key: api-key, rate: 10/h, algorithm: fixed-window, warn: 80% }";
    let clock: ManualClock = crate::clock();
    let builder = Limiter::builder().config(config(limits)).clock(clock);
    let limiter: Limiter<MemoryStore<ManualClock>> = builder.build().unwrap();
    let request = Request::new().api_key("sk_live_hunter2").cost(1);
    let id = crate::reserve(&limiter, &request).await;
    limiter
        .reload(config(&limits.replace(", warn: 80%", "")))
        .unwrap();
    let settled = limiter.commit(&id, 8).await.unwrap();
    let [warning] = settled.warnings() else {
        panic!("{settled:?}")
    };
    assert_eq!((&*warning.band, warning.share), ("10/h", 80));
    assert!(warning.key.starts_with("api-key:"), "{}", warning.key);
    assert!(!warning.key.contains("hunter2"), "{}", warning.key);
    assert!(!format!("{settled:?}").contains("api-key:"), "{settled:?}");
}
