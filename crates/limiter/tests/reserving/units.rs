//! Reservations of several units, case by case.

use crate::{MINUTE, ManualLimiter};
use std::collections::BTreeMap;
use tidegate::{Cost, Request, SettleError, SettleState};

const LIMITS: &str = "
    { name: calls, key: user, rate: 10/min, algorithm: fixed-window },
    { name: tokens, key: user, unit: tokens, rate: 1000/h, algorithm: fixed-window, overdraft: 100 },
    { name: money, key: user, unit: microusd, rate: 5000/h, algorithm: fixed-window }";

struct Budgets(ManualLimiter);

impl Budgets {
    fn new() -> Self {
        Self(ManualLimiter::new(LIMITS))
    }

    async fn reserve(&self, cost: impl Into<Cost<'_>>) -> String {
        let request = Request::new().user("ann").cost(cost.into());
        crate::reserve(&self.0.limiter, &request).await
    }

    async fn commit(&self, id: &str, actual: impl Into<Cost<'_>>) -> SettleState {
        self.0.limiter.commit(id, actual).await.unwrap().state()
    }

    async fn fault(&self, id: &str, actual: impl Into<Cost<'_>>) -> String {
        let error = self.0.limiter.commit(id, actual).await.unwrap_err();
        assert!(matches!(error, SettleError::BadCost(_)), "{error}");
        error.to_string()
    }

    /// Returns the used requests, tokens and microdollars.
    fn used(&self) -> [u64; 3] {
        let look = Request::new().user("ann").cost(0);
        let decision = self.0.limiter.check_now(&look).unwrap();
        let used: BTreeMap<_, _> = decision
            .applied()
            .map(|band| (band.limit(), band.capacity() - band.remaining()))
            .collect();
        ["calls", "tokens", "money"].map(|limit| used[limit])
    }
}

#[tokio::test]
async fn a_commit_settles_each_unit_that_it_names() {
    let budgets = Budgets::new();
    let id = budgets.reserve(&[("tokens", 800)]).await;
    assert_eq!(budgets.used(), [1, 800, 0]);
    assert_eq!(
        budgets.commit(&id, &[("tokens", 150)]).await,
        SettleState::Settled
    );
    assert_eq!(budgets.used(), [1, 150, 0], "the request is charged 1");
    assert_eq!(
        budgets.commit(&id, &[("tokens", 9)]).await,
        SettleState::Already
    );
    assert_eq!(budgets.used(), [1, 150, 0]);
}

#[tokio::test]
async fn a_number_settles_the_only_unit_other_than_requests() {
    let budgets = Budgets::new();
    let id = budgets.reserve(&[("tokens", 800)]).await;
    budgets.commit(&id, 150).await;
    assert_eq!(budgets.used(), [1, 150, 0]);
    // A number that was reserved is of requests, and so is the one that settles it.
    let id = budgets.reserve(3).await;
    assert_eq!(budgets.used(), [4, 150, 0]);
    budgets.commit(&id, 2).await;
    assert_eq!(budgets.used(), [3, 150, 0]);
}

#[tokio::test]
async fn a_number_for_several_units_is_an_error_that_names_them() {
    let budgets = Budgets::new();
    let id = budgets.reserve(&[("tokens", 800), ("microusd", 90)]).await;
    let fault = budgets.fault(&id, 150).await;
    assert_eq!(
        fault,
        "a number can mean several units; name one of `tokens`, `microusd`"
    );
    let fault = budgets.fault(&id, &[("tokenz", 150)]).await;
    assert_eq!(
        fault,
        "unknown unit `tokenz`; expected `requests`, `tokens`, `microusd`"
    );
    let fault = budgets.fault(&id, &[("tokens", 1), ("tokens", 2)]).await;
    assert_eq!(fault, "a cost names the unit `tokens` twice");
    assert_eq!(budgets.used(), [1, 800, 90], "nothing is settled");
    assert_eq!(
        budgets.commit(&id, &[("microusd", 40)]).await,
        SettleState::Settled
    );
    assert_eq!(budgets.used(), [1, 800, 40]);
}

#[tokio::test]
async fn a_unit_that_is_known_only_afterwards_is_charged_at_the_commit() {
    let budgets = Budgets::new();
    let id = budgets.reserve(&[("tokens", 800)]).await;
    let settled = budgets
        .0
        .limiter
        .commit(&id, &[("tokens", 900), ("microusd", 120)]);
    let settled = settled.await.unwrap();
    assert_eq!(budgets.used(), [1, 900, 120]);
    let units: Vec<_> = settled
        .units()
        .iter()
        .map(|unit| (&*unit.name, unit.estimate, unit.actual))
        .collect();
    assert_eq!(
        units,
        [
            ("requests", 1, 1),
            ("tokens", 800, 900),
            ("microusd", 0, 120)
        ]
    );
    assert_eq!(
        budgets.commit(&id, &[("microusd", 5)]).await,
        SettleState::Already
    );
    assert_eq!(budgets.used(), [1, 900, 120]);
}

#[tokio::test]
async fn usage_beyond_the_estimate_goes_down_to_the_overdraft_of_its_own_limit() {
    let budgets = Budgets::new();
    let id = budgets.reserve(&[("tokens", 900)]).await;
    budgets
        .commit(&id, &[("tokens", 5_000), ("microusd", 9_000)])
        .await;
    assert_eq!(budgets.used(), [1, 1_000, 5_000]);
    budgets.0.pass(MINUTE);
    let one = [("tokens", 1)];
    let ann = Request::new().user("ann");
    assert!(
        !budgets
            .0
            .limiter
            .check_now(&ann.cost(&one))
            .unwrap()
            .is_allowed()
    );
    assert!(budgets.0.limiter.check_now(&ann).unwrap().is_allowed());
}

#[tokio::test]
async fn a_refund_returns_every_unit() {
    let budgets = Budgets::new();
    let id = budgets
        .reserve(&[("tokens", 800), ("microusd", 90), ("requests", 2)])
        .await;
    assert_eq!(budgets.used(), [2, 800, 90]);
    budgets.0.limiter.refund(&id).await.unwrap();
    assert_eq!(budgets.used(), [0, 0, 0]);
}

#[tokio::test]
async fn a_refusal_by_one_unit_reserves_nothing_of_any() {
    let budgets = Budgets::new();
    let request = Request::new().user("ann");
    let cost = [("tokens", 1_001), ("microusd", 90)];
    let refused = budgets
        .0
        .limiter
        .reserve(&request.cost(&cost), MINUTE)
        .await
        .unwrap();
    assert!(!refused.is_allowed());
    assert_eq!(refused.decision().binding().unwrap().unit(), Some("tokens"));
    assert_eq!(budgets.used(), [0, 0, 0]);
}

#[tokio::test]
async fn a_unit_that_is_not_asked_for_refuses_no_reservation() {
    let budgets = Budgets::new();
    budgets.reserve(&[("tokens", 1_000)]).await;
    let id = budgets.reserve(&[("microusd", 5)]).await;
    assert_eq!(budgets.used(), [2, 1_000, 5]);
    budgets.commit(&id, &[]).await;
    assert_eq!(
        budgets.used(),
        [2, 1_000, 5],
        "all of them settle at the estimate"
    );
}

#[tokio::test]
async fn a_policy_that_counts_only_tokens_needs_no_names() {
    let limits = "{ name: tokens, unit: tokens, rate: 1000/h, algorithm: fixed-window }";
    let limiter = ManualLimiter::new(limits);
    let id = limiter.reserve(800).await;
    assert_eq!(limiter.remaining(), 200);
    limiter.commit(&id, 150).await;
    assert_eq!(limiter.remaining(), 850);
}
