//! Any request head, any token and any key file: the client is identified or not, and nothing
//! panics.
//!
//! How: headers of an untrusted client never change its address, costs stay within their bounds,
//! and identities are printable text. The first byte chooses whether the rest is a head, `name:
//! value` on each line after the path, or the content of a key file.

use std::net::IpAddr;
use std::sync::LazyLock;
use tidegate_config::Config;
use tidegate_policy::client::{RequestFacts, Client};
use tidegate_config::Environment;

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let config = "
trusted_proxies: [10.0.0.0/8]
user: [{ claim: sub }, { header: x }]
api_key: [{ cookie: a }, { query: a }]
consumer: { claim: a.b }
attributes: { s: { segment: 2 }, q: { query: b } }
cost: { header: c, max: 9 }
jwt: { verified_by: proxy }
";
    tidegate_config::client_from_yaml(config).expect("a valid config")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    match first {
        b'k' => check_file(&text, "key_file"),
        b'j' => check_file(&text, "jwks_file"),
        b'p' => check_head(&text, IpAddr::from([10, 0, 0, 1])),
        _ => check_head(&text, IpAddr::from([192, 0, 2, 1])),
    }
});

fn check_head(text: &str, peer: IpAddr) {
    let mut lines = text.lines();
    let path = lines.next();
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let identity = CLIENT.identify(&RequestFacts {
        peer: Some(peer),
        headers: &headers[..],
        path,
        now: &|| 1_500_000_000,
    });
    if !CLIENT.trusts(peer) {
        assert_eq!(identity.ip, Some(peer));
    }
    assert!(identity.ip.is_some());
    let cost = identity.cost.cost().number();
    assert!(cost.is_some_and(|cost| (1..=9).contains(&cost)));
    let attributes = identity.attributes.iter().map(|(_, value)| value);
    for value in attributes.chain(&identity.user).chain(&identity.api_key) {
        assert!(
            !value.is_empty() && !value.contains(char::is_control),
            "{value:?}"
        );
    }
}

/// Every file contains this.
struct Holding<'a>(&'a str);

impl Environment for Holding<'_> {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

fn check_file(text: &str, field: &str) {
    let config = format!(
        "client: {{ user: {{ claim: sub }}, jwt: {{ {field}: x }} }}
policies: [{{ name: p, limits: [{{ name: l, rate: 1/s }}] }}]"
    );
    if let Err(errors) = Config::parse(&config, "x", &Holding(text)) {
        assert_eq!(errors.problems().len(), 1, "{errors}");
    }
}
