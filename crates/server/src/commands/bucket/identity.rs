//! From identities to the bucket that a decision about them would ask.

use crate::failure::Failure;
use std::net::IpAddr;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::{Descriptor, Hits, KeyPart, Limit, Missing, Policy, Request, Scratch};

/// The bucket of the one limit of `policy` for whom `given` describes.
pub(super) fn bucket(
    policy: &Policy,
    rules: &KeyRules,
    given: &[String],
) -> Result<String, Failure> {
    let Some(limit) = policy.limits.first() else {
        return Err(Failure::runtime("a policy without a limit"));
    };
    let identities = read(limit, given)?;
    check(limit, &identities)?;
    name(policy, rules, &identities).ok_or_else(|| {
        Failure::input(format!(
            "limit `{}` has no bucket for that: a value is empty or not as it should be",
            limit.name
        ))
    })
}

/// What stands before the value in each part of the keys of the one limit of `policy`.
pub(super) fn labels(policy: &Policy) -> Option<Vec<String>> {
    let limit = policy.limits.first()?;
    let value = |part: &KeyPart| match part {
        KeyPart::Ip => "192.0.2.1".to_owned(),
        KeyPart::Path => "/x".to_owned(),
        KeyPart::Descriptor => "x=x".to_owned(),
        _ => "x".to_owned(),
    };
    let identities: Vec<_> = limit.key.iter().map(|it| (it.clone(), value(it))).collect();
    let name = name(policy, &KeyRules::default(), &identities)?;
    let subject = name.splitn(3, '/').nth(2)?;
    let label = |part: &str| part.split(':').next().unwrap_or_default().to_owned();
    Some(subject.split(',').map(label).collect())
}

/// A part of a key as the configuration has it.
pub(super) fn as_written(part: &KeyPart) -> String {
    match part {
        KeyPart::Ip => "ip".to_owned(),
        KeyPart::User => "user".to_owned(),
        KeyPart::ApiKey => "api-key".to_owned(),
        KeyPart::Header(name) => format!("header:{name}"),
        KeyPart::Attr(name) => format!("attr:{name}"),
        KeyPart::Route => "route".to_owned(),
        KeyPart::Host => "host".to_owned(),
        KeyPart::Method => "method".to_owned(),
        KeyPart::Path => "path".to_owned(),
        KeyPart::Descriptor => "descriptor".to_owned(),
        KeyPart::DescriptorEntry { name, nth: None } => format!("descriptor:{name}"),
        KeyPart::DescriptorEntry {
            name,
            nth: Some(nth),
        } => format!("descriptor:{name}#{nth}"),
        KeyPart::Global => "global".to_owned(),
    }
}

type Identity = (KeyPart, String);

/// `PART=VALUE`, and values alone for the parts in their order.
fn read(limit: &Limit, given: &[String]) -> Result<Vec<Identity>, Failure> {
    let mut identities: Vec<Identity> = Vec::new();
    let mut alone = Vec::new();
    for text in given {
        match text
            .split_once('=')
            .and_then(|(name, value)| Some((part(name)?, value)))
        {
            Some((part, value)) => identities.push((part, value.to_owned())),
            None => alone.push(text),
        }
    }
    let is_open = |part: &&KeyPart| {
        **part != KeyPart::Global && !identities.iter().any(|(named, _)| named == *part)
    };
    let open: Vec<KeyPart> = limit.key.iter().filter(is_open).cloned().collect();
    if alone.len() > open.len() {
        return Err(Failure::input(format!(
            "limit `{}` counts by {}: {} too many were given",
            limit.name,
            key_as_written(limit),
            alone.len() - open.len()
        )));
    }
    identities.extend(open.into_iter().zip(alone.into_iter().cloned()));
    Ok(identities)
}

/// The part of a key that `name` means.
fn part(name: &str) -> Option<KeyPart> {
    let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
    Some(match (kind, rest) {
        ("ip", "") => KeyPart::Ip,
        ("user", "") => KeyPart::User,
        ("api-key", "") => KeyPart::ApiKey,
        ("route", "") => KeyPart::Route,
        ("host", "") => KeyPart::Host,
        ("method", "") => KeyPart::Method,
        ("path", "") => KeyPart::Path,
        ("descriptor", "") => KeyPart::Descriptor,
        ("descriptor", name) => entry(name),
        ("header", name) if !name.is_empty() => KeyPart::Header(name.to_ascii_lowercase()),
        ("attr", name) if !name.is_empty() => KeyPart::Attr(name.to_owned()),
        _ => return None,
    })
}

/// An entry of a descriptor, or, with `#` and a number, one of several of that name.
fn entry(name: &str) -> KeyPart {
    let numbered = name.rsplit_once('#');
    let numbered = numbered.and_then(|(name, nth)| Some((name, nth.parse().ok()?)));
    let (name, nth) = numbered.map_or((name, None), |(name, nth)| (name, Some(nth)));
    KeyPart::DescriptorEntry {
        name: name.to_owned(),
        nth,
    }
}

/// Everything that the key needs must be there, or what stands in for it.
fn check(limit: &Limit, identities: &[Identity]) -> Result<(), Failure> {
    let has = |part: &KeyPart| identities.iter().any(|(given, _)| given == part);
    let stands_in = limit.missing == Missing::Address && has(&KeyPart::Ip);
    let absent = limit
        .key
        .iter()
        .find(|part| **part != KeyPart::Global && !has(part) && !stands_in);
    match absent {
        None => Ok(()),
        Some(part) => Err(Failure::input(format!(
            "limit `{}` counts by {}: whose bucket is meant?\n   help: add --key {}=…",
            limit.name,
            key_as_written(limit),
            as_written(part)
        ))),
    }
    .and_then(|()| check_address(identities))
}

fn check_address(identities: &[Identity]) -> Result<(), Failure> {
    let address = identities.iter().find(|(part, _)| *part == KeyPart::Ip);
    match address {
        Some((_, text)) if text.parse::<IpAddr>().is_err() => {
            Err(Failure::input(format!("`{text}` is not an address")))
        }
        _ => Ok(()),
    }
}

fn key_as_written(limit: &Limit) -> String {
    match limit.key.as_slice() {
        [] => "nothing, one bucket for all".to_owned(),
        parts => {
            let parts: Vec<String> = parts.iter().map(as_written).collect();
            format!("`{}`", parts.join(", "))
        }
    }
}

/// The name that the matcher gives to the bucket.
fn name(policy: &Policy, rules: &KeyRules, identities: &[Identity]) -> Option<String> {
    let mut request = Request::new();
    let (mut headers, mut attributes) = (Vec::new(), Vec::new());
    let entries = entries(identities);
    let descriptor = [Descriptor {
        entries: &entries,
        hits: Hits::AsRequest,
        limit: None,
    }];
    for (part, value) in identities {
        let value = value.as_str();
        match part {
            KeyPart::Ip => request.ip = value.parse().ok(),
            KeyPart::User => request.user = Some(value),
            KeyPart::ApiKey => request.api_key = Some(value),
            KeyPart::Header(name) => headers.push((name.as_str(), value)),
            KeyPart::Attr(name) => attributes.push((name.as_str(), value)),
            KeyPart::Route => request.route = Some(value),
            KeyPart::Host => request.host = Some(value),
            KeyPart::Method => request.method = Some(value),
            KeyPart::Path => request.path = Some(value),
            KeyPart::Descriptor | KeyPart::DescriptorEntry { .. } | KeyPart::Global => {}
        }
    }
    request.headers = &headers;
    request.attributes = &attributes;
    if !entries.is_empty() {
        request.descriptors = &descriptor;
    }
    let mut scratch = Scratch::default();
    let meeting = policy.meet(&request, rules, &mut scratch);
    let met = meeting.met.first()?;
    str::from_utf8(meeting.bucket(met)).ok().map(str::to_owned)
}

/// The entries of the descriptor that `identities` speak of: `k=v,k2=v2` where it is meant whole. Of
/// several with one name, those that are not told are left empty.
fn entries(identities: &[Identity]) -> Vec<(&str, &str)> {
    let mut entries: Vec<(&str, &str)> = Vec::new();
    for (part, value) in identities {
        match part {
            KeyPart::Descriptor => {
                let pairs = value.split(',');
                entries.extend(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))));
            }
            KeyPart::DescriptorEntry { name, nth } => {
                let before = usize::from(nth.unwrap_or(1)).saturating_sub(1);
                let has = |entries: &[(&str, &str)]| {
                    entries.iter().filter(|(known, _)| known == name).count()
                };
                while has(&entries) <= before {
                    entries.push((name, ""));
                }
                let mut same = entries.iter_mut().filter(|(known, _)| known == name);
                if let Some((_, known)) = same.nth(before) {
                    *known = value;
                }
            }
            _ => {}
        }
    }
    entries
}
