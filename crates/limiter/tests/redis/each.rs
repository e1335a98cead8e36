use crate::runtime;
use tidegate::{Decision, Descriptor, DescriptorHits, Limiter, Request};
use tidegate_testkit::redis::Server;

const POLICY: &str = "
policies:
  - name: edge
    evaluate: each
    limits: [{ name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 5/h }]
";

fn left(decision: &Decision) -> Vec<Option<u64>> {
    let all = 0..decision.descriptors();
    all.map(|nth| decision.descriptor(nth).map(|band| band.remaining()))
        .collect()
}

/// Refunds go to Redis in another call than charges, and the order of two calls is undefined.
#[test]
fn a_refund_was_not_available_to_the_next_descriptor() {
    let server = Server::start();
    let store = format!("store: {{ url: '{}', timeout: 10s }}", server.url());
    runtime().block_on(async {
        let builder = Limiter::builder().yaml(&format!("{store}\n{POLICY}"));
        let limiter = builder.expect("a valid config").start().await;
        let limiter = limiter.expect("the server is up");
        for nth in 0..50 {
            let name = nth.to_string();
            let (ann, bob) = ([("user", &*name)], [("user", "bob")]);
            let user = |entries, hits| Descriptor {
                entries,
                hits,
                limit: None,
            };
            let check = async |descriptors: &[Descriptor<'_>]| {
                let request = Request::new().descriptors(descriptors);
                limiter.check(&request).await.expect("a decision")
            };
            assert!(
                check(&[user(&ann, DescriptorHits::Take(5))])
                    .await
                    .is_allowed()
            );
            let decision = check(&[
                user(&ann, DescriptorHits::Take(1)),
                user(&ann, DescriptorHits::GiveBack(2)),
                user(&bob, DescriptorHits::Take(0)),
                user(&ann, DescriptorHits::Take(1)),
                user(&ann, DescriptorHits::Take(1)),
            ])
            .await;
            let expected = [0, 2, 5, 1, 0].map(Some);
            assert_eq!(left(&decision), expected, "{nth}");
        }
    });
}
