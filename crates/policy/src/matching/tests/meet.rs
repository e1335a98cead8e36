use super::fixtures::{all, first, limit, limit_for, limit_if, met, on_header, on_path};
use crate::matching::KeyRules;
use crate::{Condition, Evaluate, KeyPart, Limit, MissingIdentity, Policy, Request, Scratch};
use std::net::IpAddr;
use tidegate_core::LimitMode;

fn shadow(limit: Limit) -> Limit {
    Limit {
        mode: LimitMode::Shadow,
        ..limit
    }
}

fn by_user(name: &str, missing: MissingIdentity) -> Limit {
    Limit {
        key: vec![KeyPart::User],
        missing,
        ..limit(name)
    }
}

#[test]
fn evaluate_all_matches_every_limit_in_written_order() {
    let policy = all(vec![
        limit_for("a", &["/x"]),
        limit("b"),
        limit_for("c", &["/y", "/x/*"]),
        limit_for("d", &["/z"]),
        limit_for("e", &["/"]),
        limit("f"),
    ]);
    assert_eq!(met(&policy, &Request::new().path("/x/1")), "a b c e f");
    assert_eq!(met(&policy, &Request::new().path("/z")), "b d e f");
    assert_eq!(met(&policy, &Request::new()), "b f");
}

#[test]
fn first_ends_with_the_first_enforced_limit() {
    let policy = first(vec![
        limit_for("a", &["/x"]),
        shadow(limit("b")),
        limit("c"),
        limit("d"),
        shadow(limit("e")),
    ]);
    assert_eq!(met(&policy, &Request::new().path("/x")), "a");
    assert_eq!(met(&policy, &Request::new().path("/y")), "b c");
}

#[test]
fn a_limit_matches_once_with_any_number_of_conditions() {
    let policy = all(vec![Limit {
        conditions: vec![
            on_path("/a"),
            on_path("/"),
            Condition::default(),
            on_path("/**/b"),
        ],
        ..limit("it")
    }]);
    assert_eq!(met(&policy, &Request::new().path("/a/b")), "it");
}

#[test]
fn a_later_condition_may_match_if_an_earlier_does_not() {
    let policy = all(vec![Limit {
        conditions: vec![on_header("x-tier", "gold"), on_path("/a")],
        ..limit("it")
    }]);
    assert_eq!(met(&policy, &Request::new().path("/a")), "it");
    assert_eq!(met(&policy, &Request::new().path("/b")), "");
}

#[test]
fn disabled_limits_are_ignored() {
    let off = |limit| Limit {
        enabled: false,
        ..limit
    };
    let policy = first(vec![
        off(limit("a")),
        off(limit_for("b", &["/"])),
        off(by_user("c", MissingIdentity::Refuse)),
        limit("d"),
    ]);
    assert_eq!(met(&policy, &Request::new().path("/")), "d");
}

#[test]
fn a_skipped_limit_does_not_end_the_search() {
    let limits = || {
        vec![
            by_user("token", MissingIdentity::Skip),
            by_user("address", MissingIdentity::Address),
        ]
    };
    assert_eq!(met(&first(limits()), &Request::new().user("ann")), "token");
    assert_eq!(met(&first(limits()), &Request::new()), "address");
    assert_eq!(met(&all(limits()), &Request::new()), "address");
}

#[test]
fn a_limit_that_requires_an_identity_refuses_without_one() {
    let limits = || {
        vec![
            limit("a"),
            by_user("b", MissingIdentity::Refuse),
            limit("c"),
        ]
    };
    assert_eq!(met(&all(limits()), &Request::new()), "!b");
    assert_eq!(met(&all(limits()), &Request::new().user("")), "!b");
    assert_eq!(met(&all(limits()), &Request::new().user("ann")), "a b c");
    assert_eq!(met(&first(limits()), &Request::new()), "a");
}

#[test]
fn a_shadow_limit_refuses_nothing() {
    let policy = all(vec![
        shadow(by_user("a", MissingIdentity::Refuse)),
        limit("b"),
    ]);
    assert_eq!(met(&policy, &Request::new()), "b");
    assert_eq!(met(&policy, &Request::new().user("ann")), "a b");
}

#[test]
fn all_parts_of_a_condition_must_match() {
    let attributes = [("kind", "event"), ("region", "eu")];
    let headers = [("x-tier", "gold")];
    let policy = all(vec![limit_if(
        "it",
        Condition {
            path: on_path("/a").path,
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            headers: vec![("X-Tier".to_owned(), "Gold".to_owned())],
            clients: vec![
                "203.0.113.0/24".parse().unwrap(),
                "2001:db8::/32".parse().unwrap(),
            ],
            attributes: vec![("kind".to_owned(), "event".to_owned())],
            ..Condition::default()
        },
    )]);
    let whole = Request::new()
        .path("/a")
        .method("POST")
        .ip("203.0.113.9".parse().unwrap())
        .headers(&headers)
        .attributes(&attributes);
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(met(&policy, &whole), "it");
    // Some servers accept a method in any case, so no notation may evade the limit.
    assert_eq!(met(&policy, &whole.method("post")), "it");
    assert_eq!(met(&policy, &whole.ip(ip("::ffff:203.0.113.9"))), "it");
    assert_eq!(met(&policy, &whole.ip(ip("2001:db8:1::1"))), "it");
    let others = [
        whole.path("/b"),
        whole.method("PUT"),
        whole.ip(ip("203.0.114.1")),
        whole.headers(&[]),
        whole.attributes(&[("kind", "Event")]),
        whole.attributes(&[("Kind", "event")]),
        Request { ip: None, ..whole },
        Request {
            method: None,
            ..whole
        },
    ];
    for other in others {
        assert_eq!(met(&policy, &other), "", "{other:?}");
    }
}

#[test]
fn a_header_condition_without_value_matches_any_value() {
    let policy = all(vec![limit_if("it", on_header("x-debug", ""))]);
    assert_eq!(
        met(&policy, &Request::new().headers(&[("X-Debug", "1")])),
        "it"
    );
    assert_eq!(
        met(&policy, &Request::new().headers(&[("X-Debug", "")])),
        ""
    );
    assert_eq!(met(&policy, &Request::new()), "");
}

#[test]
fn the_headers_to_read_are_reported_to_frontends() {
    let off = Limit {
        enabled: false,
        ..limit_if("off", on_header("x-off", "1"))
    };
    let keyed = Limit {
        key: vec![KeyPart::Header("x-tenant".to_owned()), KeyPart::Ip],
        ..limit_if("keyed", on_header("X-Tier", "gold"))
    };
    let policy = all(vec![
        off,
        keyed,
        limit_if("again", on_header("x-tier", "silver")),
    ]);
    assert_eq!(
        policy.header_names().collect::<Vec<_>>(),
        ["x-tenant", "x-tier"]
    );
}

#[test]
fn a_scratch_serves_one_request_after_another() {
    let one = all(vec![
        limit_for("a", &["/x"]),
        by_user("b", MissingIdentity::Address),
    ]);
    let other = Policy::new("q".to_owned(), Evaluate::First, vec![limit("c")]);
    let mut scratch = Scratch::default();
    let rules = KeyRules::default();
    for _ in 0..3 {
        let meeting = one.meet(
            &Request::new().path("/x/%2e/Y").user("ann"),
            &rules,
            &mut scratch,
        );
        let buckets: Vec<_> = meeting.met.iter().map(|met| meeting.bucket(met)).collect();
        assert_eq!(buckets, [&b"p/a/global"[..], b"p/b/user:ann"]);
        let meeting = other.meet(&Request::new(), &rules, &mut scratch);
        assert_eq!(meeting.bucket(&meeting.met[0]), b"q/c/global");
    }
}
