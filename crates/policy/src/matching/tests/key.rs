use super::fixtures::{all, limit, subject};
use crate::matching::KeyRules;
use crate::{KeyPart, Limit, Request, Scratch};
use std::net::{IpAddr, Ipv4Addr};

const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn attr(name: &str) -> KeyPart {
    KeyPart::Attr(name.to_owned())
}

fn header(name: &str) -> KeyPart {
    KeyPart::Header(name.to_owned())
}

fn everything() -> Request<'static> {
    Request::new()
        .ip(IP)
        .user("ann")
        .method("GET")
        .host("example.com")
        .path("/a/./b")
        .route("users")
        .headers(&[("X-Tenant", "acme")])
        .attributes(&[("project", "42")])
}

#[test]
fn each_part_has_its_label() {
    let cases = [
        (KeyPart::Ip, "ip:192.0.2.1"),
        (KeyPart::User, "user:ann"),
        (header("x-tenant"), "header.x-tenant:acme"),
        (attr("project"), "attr.project:42"),
        (KeyPart::Route, "route:users"),
        (KeyPart::Host, "host:example.com"),
        (KeyPart::Method, "method:GET"),
        (KeyPart::Path, "path:%2Fa%2Fb"),
        (KeyPart::Global, "global"),
    ];
    for (part, expected) in cases {
        assert_eq!(subject(&[part], &everything()), expected);
    }
    assert_eq!(subject(&[], &everything()), "global");
    assert_eq!(
        subject(&[KeyPart::User, KeyPart::Route, KeyPart::Ip], &everything()),
        "user:ann,route:users,ip:192.0.2.1"
    );
}

#[test]
fn a_method_is_normalized() {
    for method in ["GET", "get", "Get"] {
        let request = Request::new().method(method);
        assert_eq!(subject(&[KeyPart::Method], &request), "method:GET");
    }
}

#[test]
fn client_values_are_escaped() {
    let request = Request::new().user("a/b,c:d{e}#f%g h\n\u{e9}");
    assert_eq!(
        subject(&[KeyPart::User], &request),
        "user:a%2Fb%2Cc%3Ad%7Be%7D%23f%25g%20h%0A%C3%A9"
    );
    let odd = [("a~ip:1", "x")];
    let request = Request::new().attributes(&odd);
    assert_eq!(subject(&[attr("a~ip:1")], &request), "attr.a%7Eip%3A1:x");
}

#[test]
fn names_of_policies_and_limits_are_escaped() {
    let policy = all(vec![limit("a/b c")]);
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&Request::new(), &KeyRules::default(), &mut scratch);
    assert_eq!(meeting.bucket(&meeting.met[0]), b"p/a%2Fb%20c/global");
}

#[test]
fn the_address_replaces_an_absent_identity() {
    let by_address = Request::new().ip(IP).user("");
    let parts = [
        KeyPart::User,
        KeyPart::ApiKey,
        header("x-tenant"),
        attr("project"),
        KeyPart::Path,
    ];
    for part in parts {
        let label = match &part {
            KeyPart::User => "user",
            KeyPart::ApiKey => "api-key",
            KeyPart::Header(_) => "header.x-tenant",
            KeyPart::Attr(_) => "attr.project",
            _ => "path",
        };
        let part = [part];
        assert_eq!(subject(&part, &by_address), format!("{label}~ip:192.0.2.1"));
        assert_eq!(subject(&part, &Request::new()), format!("{label}~unknown"));
    }
    assert_eq!(subject(&[KeyPart::Ip], &Request::new()), "ip:unknown");
    let composite = [KeyPart::User, KeyPart::Ip, KeyPart::Route];
    assert_eq!(
        subject(&composite, &by_address.route("r")),
        "user~ip:192.0.2.1,ip:192.0.2.1,route:r"
    );
}

#[test]
fn an_identity_sent_twice_counts_as_absent() {
    let twice = [("x-tenant", "acme"), ("X-TENANT", "other")];
    let request = Request::new().ip(IP).headers(&twice);
    assert_eq!(
        subject(&[header("x-tenant")], &request),
        "header.x-tenant~ip:192.0.2.1"
    );
    let with_empty = [("x-tenant", ""), ("x-tenant", "acme")];
    let request = Request::new().ip(IP).headers(&with_empty);
    assert_eq!(
        subject(&[header("x-tenant")], &request),
        "header.x-tenant~ip:192.0.2.1"
    );
    let twice = [("project", "1"), ("project", "1")];
    let request = Request::new().ip(IP).attributes(&twice);
    assert_eq!(
        subject(&[attr("project")], &request),
        "attr.project~ip:192.0.2.1"
    );
}

/// Returns the digits of a part that is written as a hash.
fn hash(part: KeyPart, request: &Request<'_>) -> String {
    let subject = subject(&[part], request);
    let (_, hash) = subject.split_once(":#").unwrap();
    assert_eq!(hash.len(), 32);
    assert!(hash.bytes().all(|digit| digit.is_ascii_hexdigit()));
    hash.to_owned()
}

#[test]
fn secrets_are_hashed_in_keys() {
    let headers = [("authorization", "hush")];
    let request = Request::new().api_key("hush").headers(&headers);
    let by_key = hash(KeyPart::ApiKey, &request);
    let by_header = hash(header("authorization"), &request);
    assert_ne!(by_key, by_header, "the part is hashed too");
    assert_eq!(
        by_key,
        hash(KeyPart::ApiKey, &Request::new().api_key("hush"))
    );
    assert_ne!(
        by_key,
        hash(KeyPart::ApiKey, &Request::new().api_key("Hush"))
    );
}

#[test]
fn long_values_are_hashed() {
    let short = "x".repeat(64);
    let long = "x".repeat(65);
    assert_eq!(
        subject(&[KeyPart::User], &Request::new().user(&short)),
        format!("user:{short}")
    );
    hash(KeyPart::User, &Request::new().user(&long));
}

#[test]
fn the_hash_is_keyed_with_the_secret() {
    let policy = all(vec![Limit {
        key: vec![KeyPart::ApiKey],
        ..limit("l")
    }]);
    let bucket = |secret| {
        let rules = KeyRules {
            secret,
            ..KeyRules::default()
        };
        let mut scratch = Scratch::default();
        let meeting = policy.meet(&Request::new().api_key("hush"), &rules, &mut scratch);
        meeting.bucket(&meeting.met[0]).to_vec()
    };
    assert_ne!(bucket(None), bucket(Some([1; 32])));
    assert_ne!(bucket(Some([1; 32])), bucket(Some([2; 32])));
    assert_eq!(bucket(Some([1; 32])), bucket(Some([1; 32])));
}

/// Users' stores contain these names: a change to them loses every count.
#[test]
fn hashes_do_not_change_from_release_to_release() {
    assert_eq!(
        hash(KeyPart::ApiKey, &Request::new().api_key("hush")),
        "bcd1951216e5bfbdc6b06069e85f5350"
    );
}
