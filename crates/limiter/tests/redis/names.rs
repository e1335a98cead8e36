use crate::runtime;
use tidegate::{Config, Limiter, Request};
use tidegate_testkit::redis::Server;

fn config(server: &Server, limits: &str) -> Config {
    let text = format!(
        "
store: {{ url: '{}', layout: open, timeout: 10s }}
policies: [{{ name: api, limits: [{limits}] }}]",
        server.url()
    );
    Config::from_yaml(&text).expect("it is right")
}

#[test]
fn limits_that_a_reload_brings_are_named_by_their_templates() {
    let server = Server::start();
    let old = "{ name: old, key: user, rate: 10/h, template: 'old:{user}' }";
    let new = "{ name: new, key: user, rate: 10/h, template: 'new:{user}' }";
    runtime().block_on(async {
        let builder = Limiter::builder().config(config(&server, old));
        let limiter = builder.connect().await.expect("the server is there");
        let ann = Request::new().user("ann");
        let ask = async || limiter.check(&ann).await.expect("it is decided");
        assert!(ask().await.is_allowed());
        limiter
            .reload(config(&server, &format!("{old}, {new}")))
            .expect("it is taken");
        let decision = ask().await;
        let left: Vec<u64> = decision.applied().map(|it| it.remaining()).collect();
        assert_eq!(left, [8, 9], "the old one goes on counting");
    });
    let mut keys = server.client().command(&["KEYS", "*"]).texts();
    keys.sort_unstable();
    assert_eq!(keys, ["new:ann", "old:ann"]);
}
