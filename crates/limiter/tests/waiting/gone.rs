//! A request that leaves while waiting releases its place, and all its other charges are refunded.

use crate::{Crowd, InMemory, ask, limiter, settle, waiting};
use proptest::prelude::*;
use std::time::Duration;
use tidegate::Request;

const HUNDRED: &str = "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s }";

/// Returns the number of further requests that fit into the line; they leave again.
async fn room(limiter: &InMemory) -> usize {
    let before = waiting(limiter);
    let crowd = Crowd::of(limiter, 300).await;
    let more = waiting(limiter) - before;
    for task in &crowd.tasks {
        task.abort();
    }
    settle().await;
    usize::try_from(more).unwrap()
}

#[tokio::test(start_paused = true)]
async fn leavers_free_as_many_places_from_any_position() {
    let everybody: Vec<usize> = (1..=100).collect();
    let front: Vec<usize> = (1..=50).collect();
    let back: Vec<usize> = (51..=100).rev().collect();
    let from_behind: Vec<usize> = (1..=100).rev().collect();
    let odd: Vec<usize> = (1..=100).filter(|nth| nth % 2 == 1).collect();
    let mixed: Vec<usize> = (1..=100).map(|nth| nth * 37 % 101).take(60).collect();
    for gone in [everybody, front, back, from_behind, odd, mixed] {
        let limiter = limiter(HUNDRED);
        let crowd = Crowd::of(&limiter, 101).await;
        assert_eq!(waiting(&limiter), 100);
        assert_eq!(room(&limiter).await, 0, "all places are taken");
        for nth in &gone {
            crowd.tasks[*nth].abort();
            settle().await;
        }
        assert_eq!(waiting(&limiter), 100 - u32::try_from(gone.len()).unwrap());
        assert_eq!(room(&limiter).await, gone.len(), "{gone:?}");
        // Once more: the requests of the first attempt have left as well.
        assert_eq!(room(&limiter).await, gone.len(), "{gone:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_move_up_when_earlier_ones_leave() {
    let limiter = limiter(HUNDRED);
    let mut crowd = Crowd::of(&limiter, 11).await;
    for nth in [3, 7, 1] {
        crowd.tasks[nth].abort();
        settle().await;
    }
    let mut stayed = 0;
    for (nth, task) in crowd.tasks.drain(..).enumerate() {
        let Ok((decision, passed)) = task.await else {
            assert!([1, 3, 7].contains(&nth));
            continue;
        };
        let turn = Duration::from_millis(100) * stayed;
        assert!(decision.is_allowed());
        assert!(passed >= turn && passed <= turn + Duration::from_millis(1));
        // The reported reset takes the remaining requests into account.
        let reset = decision.binding().unwrap().reset_after();
        assert!(reset <= Duration::from_millis(100), "{nth}: {reset:?}");
        stayed += 1;
    }
    assert_eq!(stayed, 8);
}

#[tokio::test(start_paused = true)]
async fn charges_of_other_limits_are_refunded_as_well() {
    let limiter = limiter(
        "{ name: all, rate: 10/s burst 1, on_refusal: wait, max_wait: 10s },
         { name: hourly, rate: 40/h },
         { name: daily, rate: 40/d, algorithm: fixed-window },
         { name: logged, rate: 40/d, algorithm: sliding-log },
         { name: watched, rate: 40/h, mode: shadow }",
    );
    let crowd = Crowd::of(&limiter, 31).await;
    let remaining = || {
        let looked = limiter.check_now(&Request::new().cost(0)).unwrap();
        let remaining: Vec<u64> = looked.applied().map(|band| band.remaining()).collect();
        remaining
    };
    assert_eq!(remaining(), [0, 9, 9, 9, 9]);
    tokio::time::advance(Duration::from_millis(501)).await;
    settle().await;
    for task in crowd.tasks.iter().rev() {
        task.abort();
        settle().await;
    }
    // The first and the five whose turn has come have passed.
    assert_eq!(waiting(&limiter), 0);
    assert_eq!(remaining(), [0, 34, 34, 34, 34]);
}

#[tokio::test(start_paused = true)]
async fn a_request_leaving_at_its_turn_has_passed_or_is_refunded() {
    let limiter = limiter("{ name: all, rate: 1/s burst 1, on_refusal: wait, max_wait: 10s }");
    ask(&limiter).await.unwrap();
    let waits = ask(&limiter);
    settle().await;
    tokio::time::advance(Duration::from_millis(1_001)).await;
    waits.abort();
    let passed = waits.await.is_ok();
    let next = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(next.is_allowed(), !passed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn places_are_released_exactly_in_any_order(
        steps in prop::collection::vec((0_usize..60, 0_u64..40), 1..60),
        rate in 1_u64..50,
        burst in 1_u64..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let text = format!(
                "{{ name: all, rate: {rate}/s burst {burst}, on_refusal: wait, max_wait: 20s }}"
            );
            let limiter = limiter(&text);
            let crowd = Crowd::of(&limiter, 60).await;
            for (nth, millis) in steps {
                tokio::time::advance(Duration::from_millis(millis)).await;
                crowd.tasks[nth].abort();
                settle().await;
            }
            // All remaining requests leave, the last first. Then the bucket is as if only those that passed
            // had come: none waits, so a new request never waits longer than one that follows them.
            for task in crowd.tasks.iter().rev() {
                task.abort();
                settle().await;
            }
            assert_eq!(waiting(&limiter), 0);
            let next = ask(&limiter).await.unwrap();
            let most = Duration::from_micros(1_000_000 / rate) + Duration::from_millis(2);
            assert!(next.is_allowed() && next.waited() <= most, "{:?}", next.waited());
        });
    }
}
