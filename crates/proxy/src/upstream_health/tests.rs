use super::*;
use crate::balance::{Balancer, UpstreamSet};
use tidegate_policy::route::Balance;
use tokio::time::advance;

const EJECT: EjectionRules = EjectionRules {
    failures: 3,
    lasts: Duration::from_secs(10),
};

/// A millisecond less than the duration of an ejection.
const ALMOST: Duration = Duration::from_millis(9_999);

fn balancer(names: &[&str], eject: Option<EjectionRules>) -> Balancer {
    let standing = |name: &&str| (Arc::new(UpstreamHealth::new("orders", name, eject)), 1);
    Balancer::new(names.iter().map(standing), Balance::RoundRobin)
}

fn turn(balancer: &Balancer) -> UpstreamLease {
    balancer.pick(UpstreamSet::default()).unwrap()
}

/// Returns a lease of this upstream. Does not wait: with equal weights it comes within one round.
fn turn_with(balancer: &Balancer, name: &str) -> Option<UpstreamLease> {
    let upstreams = balancer.upstreams();
    let mut turns = upstreams.iter().map(|_| turn(balancer));
    turns.find(|it| upstreams[it.index()].upstream() == name)
}

fn fail(balancer: &Balancer, name: &str, times: u32) {
    for _ in 0..times {
        turn_with(balancer, name).unwrap().failed();
    }
}

/// Returns the number of leases of each of two upstreams, of ten that are all held meanwhile.
fn shares(balancer: &Balancer) -> (usize, usize) {
    let turns: Vec<_> = (0..10).map(|_| turn(balancer)).collect();
    let first = turns.iter().filter(|it| it.index() == 0).count();
    (first, turns.len() - first)
}

#[tokio::test(start_paused = true)]
async fn only_consecutive_failures_eject() {
    let both = balancer(&["a", "b"], Some(EJECT));
    for _ in 0..5 {
        fail(&both, "a", 2);
        turn_with(&both, "a").unwrap().succeeded();
    }
    assert_eq!(shares(&both), (5, 5));
    fail(&both, "a", 3);
    assert_eq!(shares(&both), (0, 10));
    assert_eq!(both.upstreams()[0].ejections(), 1);
    assert!(!both.upstreams()[0].is_in() && both.upstreams()[0].is_healthy());
}

#[tokio::test(start_paused = true)]
async fn an_ejection_lasts_as_configured_and_then_allows_one_trial() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    advance(ALMOST).await;
    assert_eq!(shares(&both), (0, 10));
    advance(Duration::from_millis(1)).await;
    let mut turns: Vec<_> = (0..10).map(|_| turn(&both)).collect();
    let mut trials = turns.iter_mut().filter(|it| it.index() == 0);
    let trial = trials.next().unwrap();
    assert!(trials.next().is_none());
    assert!(!trial.is_desperate());
    assert_eq!(shares(&both), (0, 10), "while the trial is under way");
    trial.succeeded();
    assert_eq!(shares(&both), (5, 5));
    fail(&both, "a", 2);
    assert_eq!(shares(&both), (5, 5), "old failures are forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_failed_trial_restarts_the_ejection() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    advance(EJECT.lasts).await;
    let mut trial = turn_with(&both, "a").unwrap();
    // The trial takes a while, and the ejection counts from its end.
    advance(EJECT.lasts / 2).await;
    trial.failed();
    drop(trial);
    advance(ALMOST).await;
    assert_eq!(shares(&both), (0, 10));
    advance(Duration::from_millis(1)).await;
    assert!(turn_with(&both, "a").is_some());
    assert_eq!(both.upstreams()[0].ejections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_trial_abandoned_by_its_client_passes_to_the_next_request() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    advance(EJECT.lasts).await;
    drop(turn_with(&both, "a").unwrap());
    assert!(turn_with(&both, "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_trial_does_not_eject_an_upstream_permanently() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    advance(EJECT.lasts).await;
    let lost = turn_with(&both, "a").unwrap();
    assert!(turn_with(&both, "a").is_none());
    advance(EJECT.lasts).await;
    let second = turn_with(&both, "a").unwrap();
    // The first trial no longer decides, except by a success.
    drop(lost);
    assert!(turn_with(&both, "a").is_none());
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn requests_from_before_an_ejection_neither_end_nor_prolong_it() {
    let both = balancer(&["a", "b"], Some(EJECT));
    let mut slow = turn_with(&both, "a").unwrap();
    let mut slower = turn_with(&both, "a").unwrap();
    fail(&both, "a", 3);
    slow.succeeded();
    assert_eq!(shares(&both), (0, 10));
    advance(EJECT.lasts / 2).await;
    slower.failed();
    advance(EJECT.lasts / 2).await;
    assert!(turn_with(&both, "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn if_all_are_ejected_all_are_tried_and_a_success_readmits() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    fail(&both, "b", 3);
    let mut turns = [turn(&both), turn(&both)];
    assert_ne!(turns[0].index(), turns[1].index());
    assert!(turns.iter().all(UpstreamLease::is_desperate));
    turns[0].failed();
    turns[1].succeeded();
    let back = turns[1].index();
    assert!((0..10).all(|_| turn(&both).index() == back));
    assert!(!turn(&both).is_desperate());
}

#[tokio::test(start_paused = true)]
async fn without_ejection_failures_change_nothing() {
    let both = balancer(&["a", "b"], None);
    fail(&both, "a", 100);
    assert_eq!(shares(&both), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_with_failed_health_checks_gets_no_trial() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    assert!(both.upstreams()[0].set_healthy(false));
    assert!(!both.upstreams()[0].set_healthy(false), "no news");
    advance(EJECT.lasts).await;
    assert_eq!(shares(&both), (0, 10));
    assert!(both.upstreams()[0].set_healthy(true));
    assert_eq!(shares(&both), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_in_flight_until_dropped() {
    let one = balancer(&["a"], Some(EJECT));
    let mut first = turn(&one);
    let second = turn(&one);
    first.succeeded();
    assert_eq!(one.upstreams()[0].in_flight(), 2);
    drop((first, second));
    assert_eq!(one.upstreams()[0].in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_health_under_unchanged_rules() {
    let both = balancer(&["a", "b"], Some(EJECT));
    fail(&both, "a", 3);
    let [a, b] = both.upstreams() else {
        panic!("two were given");
    };
    b.begin_checks();
    b.set_healthy(false);
    assert!(Arc::ptr_eq(a, &a.continued(Some(EJECT), true)));
    assert!(!a.continued(Some(EJECT), true).is_in());

    // Ejected by other rules; still unhealthy.
    let other = Some(EjectionRules {
        failures: 1,
        ..EJECT
    });
    assert!(a.continued(other, true).is_in());
    assert_eq!(a.continued(other, true).ejections(), 1);
    assert!(!b.continued(None, true).is_healthy());
    assert!(Arc::ptr_eq(b, &b.continued(Some(EJECT), true)));

    // It is no longer checked, and the last check may still be in flight.
    let unchecked = b.continued(Some(EJECT), false);
    assert!(unchecked.is_healthy() && !b.is_healthy());
    assert!(Arc::ptr_eq(
        &unchecked,
        &unchecked.continued(Some(EJECT), false)
    ));
}

/// Many threads at once, and a paused clock.
#[tokio::test(start_paused = true)]
async fn of_concurrent_requests_one_gets_the_trial() {
    let both = balancer(&["a", "b"], Some(EJECT));
    for _ in 0..50 {
        fail(&both, "a", 3);
        let standing = &both.upstreams()[0];
        let until = standing.ejected_until.load(Relaxed);
        // Due now: threads have no paused clock to read.
        let mut due = LazyNow(standing.origin.checked_add(Duration::from_micros(until)));
        assert_eq!(standing.condition(&mut due), UpstreamCondition::Due(until));
        let claimed: Vec<u64> = std::thread::scope(|scope| {
            let claim = || standing.claim(until, &mut LazyNow(due.0));
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            let claims = threads.into_iter().map(|it| it.join().unwrap());
            claims.flatten().collect()
        });
        assert_eq!(claimed.len(), 1);
        standing.end_ejection();
    }
}
