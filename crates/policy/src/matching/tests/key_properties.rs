//! Properties: two identities never share a bucket, and no identity leaves its position in a name.

use super::fixtures::subject;
use crate::{KeyPart, Request};
use proptest::prelude::*;
use std::net::IpAddr;

/// The identity of a request's client. Equal if and only if the buckets must be the same.
#[derive(Clone, Debug, PartialEq)]
struct Identity {
    ip: Option<IpAddr>,
    user: String,
    api_key: String,
    header: String,
    attr: String,
}

fn key() -> Vec<KeyPart> {
    vec![
        KeyPart::User,
        KeyPart::ApiKey,
        KeyPart::Header("x".to_owned()),
        KeyPart::Attr("x".to_owned()),
        KeyPart::Ip,
    ]
}

fn key_of(identity: &Identity) -> String {
    let headers = [("X", identity.header.as_str())];
    let attributes = [("x", identity.attr.as_str())];
    let request = Request {
        ip: identity.ip,
        ..Request::new()
            .user(&identity.user)
            .api_key(&identity.api_key)
            .headers(&headers)
            .attributes(&attributes)
    };
    subject(&key(), &request)
}

/// Text made of the characters that keys use.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "",
        "a",
        "b",
        ",",
        "/",
        ":",
        "~",
        "#",
        "%",
        "%2C",
        "user:",
        "~ip:",
        "192.0.2.1",
        "unknown",
        " ",
        "{",
        "}",
        "\0",
        "\n",
        "\u{e9}",
        "ip:unknown",
    ]);
    prop_oneof![
        8 => prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
        1 => "[ab]{60,70}",
    ]
}

fn identity() -> impl Strategy<Value = Identity> {
    let ip = prop::sample::select(vec![
        None,
        Some("192.0.2.1".parse().unwrap()),
        Some("192.0.2.11".parse().unwrap()),
        Some("2001:db8::".parse().unwrap()),
        Some("2001:db8:1::".parse().unwrap()),
    ]);
    (ip, text(), text(), text(), text()).prop_map(|(ip, user, api_key, header, attr)| Identity {
        ip,
        user,
        api_key,
        header,
        attr,
    })
}

/// Two identities that differ little, if at all.
fn two() -> impl Strategy<Value = (Identity, Identity)> {
    (identity(), identity(), any::<[bool; 5]>()).prop_map(|(one, other, same)| {
        let mut near = one.clone();
        if !same[0] {
            near.ip = other.ip;
        }
        if !same[1] {
            near.user = other.user;
        }
        if !same[2] {
            near.api_key = other.api_key;
        }
        if !same[3] {
            near.header = other.header;
        }
        if !same[4] {
            near.attr = other.attr;
        }
        (one, near)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn two_identities_never_share_a_key((one, other) in two()) {
        prop_assert_eq!(one == other, key_of(&one) == key_of(&other), "{}", key_of(&one));
    }

    #[test]
    fn no_identity_escapes_its_part_of_the_key(identity in identity()) {
        let key = key_of(&identity);
        prop_assert_eq!(key.split(',').count(), 5);
        for part in key.split(',') {
            prop_assert!(part.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(!part.contains(['{', '}', ' ']), "{}", part);
            prop_assert!(!part.contains('/') || part.contains("ip:2001:"));
        }
    }
}
