//! Concurrent requests of one caller, as in a pipeline. Asks for the same bucket are decided in the
//! order of sending.

use crate::fault::load::connect;
use crate::world;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tidegate_core::{Ask, Op, Quota, Receipt, Reply, Store, StoreError};
use tidegate_redis::{RedisBuckets, RedisOptions};

fn hourly(amount: u64) -> Quota {
    let spec = Quota::new(amount, 3_600_000_000);
    spec.build().expect("a valid quota")
}

fn store() -> RedisBuckets {
    let settings = world::standalone(world::shared_server());
    connect(
        settings,
        RedisOptions::default().prefix(world::own_prefix()),
    )
}

type PendingCall<'a> = Pin<Box<dyn Future<Output = Result<Reply, StoreError>> + Send + 'a>>;

/// Decides all requests; all start in order before the first is awaited.
fn decide_together(store: &RedisBuckets, requests: &[[Ask<'_>; 1]]) -> Vec<Reply> {
    let asked = requests
        .iter()
        .map(|asks| -> PendingCall<'_> { Box::pin(store.decide(asks)) });
    let mut pending: Vec<_> = asked.map(|it| (it, None)).collect();
    world::runtime().block_on(poll_fn(|context| {
        let mut left = Poll::Ready(());
        for (one, reply) in &mut pending {
            if reply.is_none() {
                match one.as_mut().poll(context) {
                    Poll::Ready(ready) => *reply = Some(ready.expect("the store answers")),
                    Poll::Pending => left = Poll::Pending,
                }
            }
        }
        left
    }));
    pending.into_iter().filter_map(|(_, reply)| reply).collect()
}

/// Returns what remains of the bucket after each of `ops`, which all start before the first is
/// awaited.
fn left(store: &RedisBuckets, bucket: &str, ops: &[Op]) -> Vec<u64> {
    let quota = hourly(10);
    let asks: Vec<[Ask<'_>; 1]> = ops
        .iter()
        .map(|op| {
            let ask = Ask::take(bucket.as_bytes(), &quota, 1);
            [Ask { op: *op, ..ask }]
        })
        .collect();
    let remaining = |reply: &Reply| reply.outcomes.first().map(|it| it.remaining);
    let replies = decide_together(store, &asks);
    replies.iter().filter_map(remaining).collect()
}

/// Regression: takes used one script and everything else another, each on a separate connection.
#[test]
fn reads_and_returns_were_executed_after_a_later_take() {
    let store = store();
    let receipt = Receipt::latest(1);
    let take = Op::Take(1);
    for nth in 0..100 {
        let said = |name: &str, ops: &[Op]| left(&store, &format!("p/{name}/{nth}"), ops);
        let looks = [Op::Look, take, Op::Look, take, take, Op::Look];
        assert_eq!(said("looks", &looks), [10, 9, 9, 8, 7, 7], "{nth}");
        let last = [take, take, Op::Test(1), Op::Look];
        assert_eq!(said("last", &last), [9, 8, 8, 8], "{nth}");
        let returns = [Op::Take(10), take, Op::GiveBack(receipt), take];
        assert_eq!(said("returns", &returns), [0, 0, 1, 0], "{nth}");
    }
}
