use super::super::*;
use super::headers;
use http::{HeaderMap, Method, Uri};
use tidegate::KeyPart;
use tidegate::Limiter;

const POLICIES: &str = "
client:
  trusted_proxies: [127.0.0.1]
  attributes: { project: { segment: 2 }, plan: { query: plan } }
  user: { header: X-User-Id }
  cost: { header: X-Cost, max: 10 }
policies:
  - name: paths
    limits:
      - { name: a, match: [{ path: /a, headers: { X-Tier: gold } }], key: 'header:X-Tenant', rate: 10/s }
  - name: plain
    limits:
      - { name: b, key: ip, rate: 10/s }
  - name: hosts
    limits:
      - { name: c, key: host, rate: 10/s }
  - name: who
    limits:
      - { name: d, key: [user, api-key], rate: 10/s }
";

fn limiter() -> Limiter {
    Limiter::from_yaml(POLICIES).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the request of a direct check, as shown by `show`.
fn direct<T>(target: &str, headers: &HeaderMap, show: impl Fn(&Request<'_>) -> T) -> T {
    direct_to(None, target, headers, show)
}

/// Returns the same for another policy than the first.
fn direct_to<T>(
    policy: Option<&str>,
    target: &str,
    headers: &HeaderMap,
    show: impl Fn(&Request<'_>) -> T,
) -> T {
    let limiter = limiter();
    let rules = limiter.rules().expect("it is open");
    let uri: Uri = target.parse().expect("a target");
    let head = RequestHeadRef {
        method: &Method::GET,
        uri: &uri,
        headers,
        peer: "192.0.2.7".parse().ok(),
    };
    let question = HttpQuestion::direct(&rules, policy, head);
    let pairs = question.pairs();
    show(&question.request(&pairs))
}

/// Returns the same for a request that a proxy asks about.
fn forwarded<T>(
    policy: Option<&str>,
    headers: &HeaderMap,
    show: impl Fn(&Request<'_>) -> T,
) -> Result<T, ForwardedError> {
    let limiter = limiter();
    let rules = limiter.rules().expect("it is open");
    let head = RequestHeadRef {
        method: &Method::GET,
        uri: &Uri::from_static("http://tidegate.internal/v1/auth?x=1"),
        headers,
        peer: "127.0.0.1".parse().ok(),
    };
    let question = HttpQuestion::forwarded(&rules, policy, head)?;
    let pairs = question.pairs();
    Ok(show(&question.request(&pairs)))
}

#[test]
fn an_absolute_target_counts_before_the_host_header() {
    let one = headers(&[("host", b"b.example:8080")]);
    let two = headers(&[("host", b"b.example"), ("host", b"c.example")]);
    let hidden = headers(&[("host", b"free@b.example")]);
    for (target, headers, host, path) in [
        ("/x?y", &one, Some("b.example:8080"), Some("/x?y")),
        (
            "http://a.example/x?y",
            &one,
            Some("a.example"),
            Some("/x?y"),
        ),
        ("http://u:p@a.example", &one, Some("a.example"), Some("/")),
        ("/x", &two, None, Some("/x")),
        ("/x", &hidden, Some("b.example"), Some("/x")),
        ("*", &one, Some("b.example:8080"), Some("*")),
        // A target without a path means the root; so does one that cannot have a path.
        ("http://a.example?x", &one, Some("a.example"), Some("/")),
        ("a.example:443", &one, Some("a.example"), Some("/")),
    ] {
        let seen = direct_to(Some("hosts"), target, headers, |it| {
            (it.host.map(str::to_owned), it.path.map(str::to_owned))
        });
        assert_eq!(
            (seen.0.as_deref(), seen.1.as_deref()),
            (host, path),
            "{target}"
        );
    }
}

#[test]
fn a_host_is_read_only_if_the_policy_uses_it() {
    let sent = headers(&[("host", b"b.example")]);
    for (policy, host) in [("hosts", Some("b.example")), ("plain", None)] {
        direct_to(Some(policy), "/", &sent, |it| {
            assert_eq!(it.host, host, "{policy}");
        });
    }
}

#[test]
fn a_direct_request_ignores_forwarding_headers() {
    let forged = headers(&[
        ("x-forwarded-for", b"198.51.100.1"),
        ("x-forwarded-uri", b"/free"),
        ("x-original-method", b"DELETE"),
        ("x-user-id", b"ann"),
        ("x-cost", b"3"),
    ]);
    direct("/a/apollo?plan=gold", &forged, |it| {
        assert_eq!(it.ip, "192.0.2.7".parse().ok());
        assert_eq!(
            (it.method, it.path),
            (Some("GET"), Some("/a/apollo?plan=gold"))
        );
        // Only a trusted proxy may name the user.
        assert_eq!((it.user, it.cost.number()), (None, Some(3)));
        assert_eq!(it.attributes, [("project", "apollo"), ("plan", "gold")]);
    });
}

#[test]
fn only_headers_that_the_policy_reads_are_copied() {
    let sent = headers(&[
        ("x-tier", b"gold"),
        ("x-tenant", b"acme"),
        ("x-other", b"1"),
        ("authorization", b"Bearer x"),
    ]);
    direct("/a", &sent, |it| {
        assert_eq!(it.headers, [("x-tenant", "acme"), ("x-tier", "gold")]);
    });
}

#[test]
fn a_binary_header_is_present_but_never_an_identity() {
    let sent = headers(&[("x-tier", b"gold"), ("x-tenant", b"acme\xff")]);
    let limiter = limiter();
    direct("/a", &sent, |it| {
        let decision = limiter.check_now(it).expect("memory answers");
        let binding = decision.binding().expect("the limit applies");
        assert_eq!(binding.key_parts(), [KeyPart::Header("x-tenant".into())]);
        assert_eq!(binding.key(), "header.x-tenant~ip:192.0.2.7");
    });
}

#[test]
fn a_target_is_required_only_by_limits_that_use_paths() {
    let silent = headers(&[("x-forwarded-for", b"192.0.2.1")]);
    let path = |it: &Request<'_>| it.path.map(str::to_owned);
    assert_eq!(forwarded(None, &silent, path), Err(ForwardedError::NoUri));
    assert_eq!(
        forwarded(Some("paths"), &silent, path),
        Err(ForwardedError::NoUri)
    );
    assert_eq!(forwarded(Some("plain"), &silent, path), Ok(None));
    // The decision finds that there is no such policy.
    assert_eq!(forwarded(Some("nobody"), &silent, path), Ok(None));
    let telling = headers(&[("x-forwarded-uri", b"/a")]);
    assert_eq!(forwarded(None, &telling, path), Ok(Some("/a".to_owned())));
    assert!(
        ForwardedError::NoUri
            .to_string()
            .contains("X-Forwarded-Uri or X-Original-URI")
    );
}

#[test]
fn a_forwarded_request_never_uses_the_target_of_the_check() {
    let sent = headers(&[
        ("host", b"tidegate.internal"),
        ("x-forwarded-for", b"203.0.113.9, 192.0.2.1"),
        ("x-forwarded-uri", b"/a/apollo?plan=gold"),
        ("x-user-id", b"ann"),
    ]);
    forwarded(Some("who"), &sent, |it| {
        assert_eq!((it.method, it.host, it.user), (None, None, Some("ann")));
        assert_eq!(it.ip, "192.0.2.1".parse().ok());
        assert_eq!(it.attributes, [("project", "apollo"), ("plan", "gold")]);
    })
    .expect("it tells enough");
}

#[test]
fn values_given_by_the_caller_win() {
    let limiter = limiter();
    let rules = limiter.rules().expect("it is open");
    let headers = headers(&[("x-api-key", b"k1"), ("x-cost", b"5")]);
    let head = RequestHeadRef {
        method: &Method::GET,
        uri: &Uri::from_static("/a/apollo"),
        headers: &headers,
        peer: None,
    };
    let mut question = HttpQuestion::direct(&rules, Some("who"), head);
    question
        .user("ann")
        .attribute("project", "zeus".to_owned())
        .attribute("plan", "gold")
        .route("orders")
        .cost(0);
    let pairs = question.pairs();
    let request = question.request(&pairs);
    assert_eq!((request.user, request.route), (Some("ann"), Some("orders")));
    assert_eq!(
        (request.api_key, request.cost.number()),
        (Some("k1"), Some(0))
    );
    assert_eq!(request.attributes, [("project", "zeus"), ("plan", "gold")]);
    assert_eq!((request.ip, request.policy), (None, Some("who")));
    let shown = format!("{question:?} {head:?}");
    assert!(!shown.contains("k1"), "{shown}");
}

#[test]
fn identities_unused_by_any_key_are_not_read() {
    let sent = headers(&[("x-api-key", b"k1")]);
    let api_key = |it: &Request<'_>| it.api_key.map(str::to_owned);
    assert_eq!(direct_to(Some("plain"), "/", &sent, api_key), None);
    assert_eq!(
        direct_to(Some("who"), "/", &sent, api_key).as_deref(),
        Some("k1")
    );
    // It is unknown which attributes the missing policy would have used.
    assert_eq!(
        direct_to(Some("nobody"), "/", &sent, api_key).as_deref(),
        Some("k1")
    );
}
