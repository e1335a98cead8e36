//! For any client headers, the names of its buckets are plain, short, and its own.
//!
//! How: two requests against limits with every kind of key. Each name must keep to the safe
//! alphabet and to a length, and contain secrets only as a hash. Two requests whose identities
//! differ must not share a bucket.

use arbitrary::Arbitrary;
use std::net::IpAddr;
use std::sync::LazyLock;
use tidegate_core::Quota;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::policy::Scratch;
use tidegate_policy::{Band, Evaluate, KeyPart, Limit, Policy, Request};

/// A name of two parts, each at its longest: `policy/limit/label:value,label:value`.
const NAME_BYTES_MAX: usize = 512;

#[derive(Arbitrary, Debug)]
struct Client<'a> {
    ip: Option<IpAddr>,
    user: Option<&'a str>,
    api_key: Option<&'a str>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    path: Option<&'a str>,
    route: Option<&'a str>,
    tenant: Vec<&'a str>,
    token: Vec<&'a str>,
    project: Vec<&'a str>,
}

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let tenant = KeyPart::Header("x-tenant".to_owned());
    let token = KeyPart::Header("x-auth-token".to_owned());
    let project = KeyPart::Attr("project".to_owned());
    let keys = [
        vec![KeyPart::User],
        vec![KeyPart::ApiKey],
        vec![tenant.clone()],
        vec![token],
        vec![project.clone()],
        vec![KeyPart::Route],
        vec![KeyPart::Ip],
        vec![KeyPart::Host],
        vec![KeyPart::Method],
        vec![KeyPart::Path],
        vec![KeyPart::Global],
        vec![KeyPart::User, tenant.clone()],
        vec![tenant, project],
        vec![KeyPart::Ip, KeyPart::Path],
    ];
    let limits = keys.into_iter().enumerate().map(|(i, key)| Limit {
        key,
        bands: vec![Band {
            text: "1/s".to_owned(),
            label: None,
            quota: Quota::new(1, 1_000_000).build().expect("a valid quota"),
        }],
        ..Limit::new(format!("limit-{i}"))
    });
    Policy::new("fuzz".to_owned(), Evaluate::All, limits.collect())
});

fuzz_target!(|clients: [Client<'_>; 2]| {
    let [left, right] = clients.each_ref().map(names);
    for (limit, (left, right)) in left.iter().zip(&right).enumerate() {
        let [a, b] = clients.each_ref().map(|client| identity(client, limit));
        if let (Some(a), Some(b)) = (a, b) {
            assert_eq!(a == b, left == right, "{left} and {right}");
        }
    }
});

/// Returns the names of all buckets of a client, one for each limit.
fn names(client: &Client<'_>) -> Vec<String> {
    let mut headers = pairs("X-Tenant", &client.tenant);
    headers.extend(pairs("x-auth-TOKEN", &client.token));
    let attributes = pairs("project", &client.project);
    let request = Request {
        ip: client.ip,
        user: client.user,
        api_key: client.api_key,
        method: client.method,
        host: client.host,
        path: client.path,
        route: client.route,
        headers: &headers,
        attributes: &attributes,
        ..Request::new()
    };
    let mut scratch = Scratch::default();
    let meeting = POLICY.meet(&request, &KeyRules::default(), &mut scratch);
    assert_eq!(meeting.met.len(), POLICY.limits.len());
    let mut names = Vec::new();
    for (i, met) in meeting.met.iter().enumerate() {
        let name = std::str::from_utf8(meeting.bucket(met)).expect("names are ASCII");
        let subject = meeting.subject(met);
        assert_eq!(name, format!("fuzz/limit-{i}/{subject}"));
        assert!(name.len() <= NAME_BYTES_MAX, "{name}");
        assert!(name.bytes().all(is_safe), "{name}");
        if let Some(value) = ["api-key:", "header.x-auth-token:"]
            .iter()
            .find_map(|label| subject.strip_prefix(label))
        {
            assert!(is_hash(value), "{name}");
        }
        names.push(name.to_owned());
    }
    names
}

fn pairs<'a>(name: &'a str, values: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    values.iter().map(|value| (name, *value)).collect()
}

fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~%#:,/-".contains(&byte)
}

fn is_hash(value: &str) -> bool {
    value.len() == 33
        && value.starts_with('#')
        && value.bytes().skip(1).all(|digit| digit.is_ascii_hexdigit())
}

/// Returns the client's identity for a limit, if it equals a header.
fn identity<'a>(client: &Client<'a>, limit: usize) -> Option<Vec<&'a str>> {
    let only = |values: &[&'a str]| match values {
        [value] => Some(*value),
        _ => None,
    };
    let parts = match limit {
        0 => vec![client.user],
        1 => vec![client.api_key],
        2 => vec![only(&client.tenant)],
        3 => vec![only(&client.token)],
        4 => vec![only(&client.project)],
        5 => vec![client.route],
        11 => vec![client.user, only(&client.tenant)],
        12 => vec![only(&client.tenant), only(&client.project)],
        _ => return None,
    };
    let parts: Option<Vec<&str>> = parts.into_iter().collect();
    parts.filter(|parts| parts.iter().all(|part| !part.is_empty()))
}
