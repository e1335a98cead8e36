use crate::world::{Hello, call, get_with, header, limiter, statuses};
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;

#[tokio::test]
async fn listed_clients_are_refused_and_exempt_ones_always_pass() {
    let limiter = limiter(
        "
respond: { profile: collector }
client: { attributes: { project: { header: x-project } } }
guards:
  - { name: projects, deny: 'attr:project', list: [p1] }
  - { name: staff, allow: api-key, list: [root] }
policies: [{ name: api, limits: [{ name: all, rate: 1/h }] }]",
    );
    let hello = Hello::default();
    let service = RateLimitLayer::new(limiter).layer(hello.clone());
    for _ in 0..3 {
        let refused = call(&service, get_with(&[("x-project", "p1")])).await;
        assert_eq!(refused.status(), 402);
        assert_eq!(header(&refused, "retry-after"), None);
        assert_eq!(
            refused.body().as_ref(),
            br#"{"code":402,"error":true,"message":"Project has exceeded the events limit"}"#
        );
    }
    assert_eq!(hello.called(), 0);
    let root = || get_with(&[("x-api-key", "root"), ("x-project", "p1")]);
    assert_eq!(statuses(&service, [root(), root()]).await, [200, 200]);
    let other = || get_with(&[("x-project", "p2")]);
    assert_eq!(statuses(&service, [other(), other()]).await, [200, 402]);
}
