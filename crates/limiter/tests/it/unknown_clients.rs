use tidegate::{Config, Limiter, Request};

fn text(limit: &str) -> String {
    format!("policies: [{{ name: api, limits: [{{ name: a, rate: 1000/h, {limit} }}] }}]")
}

/// Returns the number of requests that lacked an address at a limit.
fn counted(limit: &str, requests: &[Request<'_>]) -> u64 {
    let limiter = Limiter::from_yaml(&text(limit)).expect("a valid config");
    for request in requests {
        limiter.check_now(request).expect("a decision");
    }
    limiter.unknown_clients()
}

#[test]
fn requests_that_share_a_bucket_because_their_address_is_missing_are_counted() {
    let (bare, ann) = (Request::new(), Request::new().user("ann"));
    let addressed = Request::new().ip("192.0.2.1".parse().unwrap());
    let requests = [bare, ann, addressed];
    for (limit, expected) in [
        ("key: ip", 2),
        ("key: [ip, path]", 2),
        ("key: [path, ip]", 2),
        ("key: user", 1),
        ("key: 'header:x-tenant'", 2),
        ("key: ip, mode: shadow", 2),
        ("match: { client: 192.0.2.0/24 }", 2),
        // Every request has a bucket that it should have, or none.
        ("key: ip, missing: skip", 0),
        ("key: ip, missing: refuse", 0),
        ("key: global", 0),
        ("key: path", 0),
        ("key: ip, mode: off", 0),
        ("key: ip, match: { path: /elsewhere }", 0),
    ] {
        assert_eq!(counted(limit, &requests), expected, "{limit}");
    }
}

#[test]
fn a_user_cannot_be_taken_for_an_unknown_client() {
    for user in [
        "unknown",
        "~unknown",
        "a~unknown",
        "a,user~unknown",
        ":unknown",
        "ip:unknown",
    ] {
        assert_eq!(
            counted("key: user", &[Request::new().user(user)]),
            0,
            "{user}"
        );
    }
}

#[test]
fn a_reload_keeps_the_count() {
    let limiter = Limiter::from_yaml(&text("key: ip")).unwrap();
    limiter.check_now(&Request::new()).unwrap();
    limiter
        .reload(Config::from_yaml(&text("key: ip, missing: skip")).unwrap())
        .unwrap();
    limiter.check_now(&Request::new()).unwrap();
    assert_eq!(limiter.unknown_clients(), 1);
}
