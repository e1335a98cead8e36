//! Describes how clients are identified.

use super::subject;
use super::words::list;
use tidegate_policy::client::jwt::{Jwt, Proof, TokenLocation};
use tidegate_policy::client::{AddressHeader, Client, CostRule, CostRules, IdentitySource, Trust};
use tidegate_policy::limit::KeyPart;

/// Describes how clients are identified.
pub(super) fn explain(client: &Client) -> String {
    let mut lines = vec![address(client)];
    lines.extend(identity("user", &client.user));
    lines.extend(identity("API key", &client.api_key));
    for (name, sources) in &client.attributes {
        lines.extend(identity(&format!("attribute `{name}`"), sources));
    }
    lines.extend(costs(&client.cost));
    lines.extend(client.jwt.as_deref().map(jwt));
    lines.join("\n  ")
}

/// Describes the headers that set the cost of a request.
fn costs(rules: &CostRules) -> Vec<String> {
    let sets = |what: &str, rule: &CostRule| {
        format!(
            "The header `{}` sets {what}, 1 to {}; {} without it.",
            rule.header, rule.max, rule.default
        )
    };
    match rules {
        CostRules::None => Vec::new(),
        CostRules::Number(rule) => vec![sets("the cost of a request", rule)],
        CostRules::Units(rules) => {
            let rules = rules.iter();
            let each = rules
                .map(|(unit, rule)| sets(&format!("the {} of a request", unit.as_str()), rule));
            each.collect()
        }
    }
}

fn address(client: &Client) -> String {
    if client.trusted_proxies.is_empty() {
        return "The client address is the peer address; no proxy is trusted.".to_owned();
    }
    let proxies: Vec<String> = client
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    let headers: Vec<String> = client
        .address
        .iter()
        .map(|header: &AddressHeader| format!("`{}`", header.name()))
        .collect();
    let first = if headers.len() > 1 {
        "the first of "
    } else {
        ""
    };
    format!(
        "The client address is the peer address, or, behind a proxy in {}, the address in \
         {first}{}.",
        list(&proxies, "or"),
        list(&headers, "and")
    )
}

/// Returns "The user is …", if the identity has a source.
fn identity(what: &str, sources: &[IdentitySource]) -> Option<String> {
    let sources: Vec<String> = sources.iter().map(source).collect();
    (!sources.is_empty()).then(|| format!("The {what} is {}.", sources.join(", else ")))
}

fn source(source: &IdentitySource) -> String {
    match source {
        IdentitySource::Header {
            trust: Trust::Proxies,
            ..
        } => format!("{source} (from trusted proxies only)"),
        _ => source.to_string(),
    }
}

/// Describes the parts of a key that no source in `client` provides, if there are any.
pub(super) fn untold(client: &Client, key: &[KeyPart]) -> Option<String> {
    let what = key.iter().filter(|part| !client.knows(part));
    let what: Vec<String> = what.map(|part| subject::noun(part, 128)).collect();
    (!what.is_empty()).then(|| {
        format!(
            "Only requests to /v1/check can send the {}: `client` has no source of it.",
            list(&what, "and the")
        )
    })
}

fn jwt(jwt: &Jwt) -> String {
    let place = match &jwt.place {
        TokenLocation::Header(name) => format!("the header `{name}`"),
        TokenLocation::Cookie(name) => format!("the cookie `{name}`"),
    };
    let proof = match &jwt.proof {
        Proof::Proxy => "that trusted proxies verify".to_owned(),
        Proof::Keys { keys, algorithms } => {
            let allowed = algorithms.iter();
            let allowed = allowed.filter(|one| keys.iter().any(|key| key.fits(**one)));
            let allowed: Vec<&str> = allowed.map(|one| one.name()).collect();
            let keys = match keys.as_slice() {
                [key] => key.kind().to_owned(),
                keys => format!("one of {} keys", keys.len()),
            };
            format!("verified with {keys} ({})", list(&allowed, "or"))
        }
    };
    let mut text = format!("Claims come from the token in {place} {proof}");
    for (what, names) in [
        (", issued by ", &jwt.validity.issuers),
        (", audience ", &jwt.validity.audiences),
    ] {
        if !names.is_empty() {
            text.push_str(what);
            text.push_str(&list(names, "or"));
        }
    }
    text.push('.');
    text
}
