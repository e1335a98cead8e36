//! From identities to the bucket that a decision about them would ask.

use crate::failure::Failure;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::plan::{Document, Tables, Unset};
use tidegate_policy::{Descriptor, Hits, KeyPart, Limit, Missing, Policy, Request, Scratch};

/// The bucket of the one limit of `policy` for whom `given` describes, and the subject of its plan, if
/// it has one and that is told. `tables` are what plans say.
pub(super) fn bucket(
    policy: &Policy,
    rules: &KeyRules,
    given: &[String],
    tables: &Tables,
) -> Result<(String, Option<String>), Failure> {
    let Some(limit) = policy.limits.first() else {
        return Err(Failure::runtime("a policy without a limit"));
    };
    let identities = read(limit, given)?;
    check(limit, &identities)?;
    let plan = limit.plan.as_ref();
    let subject = plan.and_then(|plan| value_of(&identities, &plan.subject));
    let bucket = match value_of(&identities, &KeyPart::Group) {
        Some(group) => name_in_group(policy, rules, &identities, &group),
        None => name(policy, rules, &identities, tables),
    };
    let bucket = bucket.ok_or_else(|| {
        Failure::input(format!(
            "limit `{}` has no bucket for that: a value is empty or not as it should be",
            limit.name
        ))
    })?;
    Ok((bucket, subject))
}

fn value_of(identities: &[Identity], part: &KeyPart) -> Option<String> {
    let given = identities.iter().find(|(given, _)| given == part);
    given.map(|(_, value)| value.clone())
}

/// The same for somebody of whom only the group is told: as if a plan said so.
fn name_in_group(
    policy: &Policy,
    rules: &KeyRules,
    identities: &[Identity],
    group: &str,
) -> Option<String> {
    let plan = policy.limits.first()?.plan.as_ref()?;
    let mut identities = identities.to_vec();
    let told = value_of(&identities, &plan.subject);
    let subject = told.unwrap_or_else(|| {
        identities.push((plan.subject.clone(), "x".to_owned()));
        "x".to_owned()
    });
    let mut document = Document::default();
    document.subject(&subject, &[("group", group)]);
    let table = document.table(Unset::Unlimited).ok()?;
    let mut tables = vec![None; plan.source];
    tables.push(Some(Arc::new(table)));
    name(policy, rules, &identities, &tables)
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
    let rules = KeyRules::default();
    let name = match value_of(&identities, &KeyPart::Group) {
        Some(group) => name_in_group(policy, &rules, &identities, &group),
        None => {
            // Whom a plan does not know, it may refuse; then there is no name.
            let policy = Policy::new(policy.name.clone(), policy.evaluate, vec![unplanned(limit)]);
            name(&policy, &rules, &identities, &[])
        }
    }?;
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
        KeyPart::Group => "group".to_owned(),
        KeyPart::Global => "global".to_owned(),
    }
}

fn unplanned(limit: &Limit) -> Limit {
    Limit {
        plan: None,
        ..limit.clone()
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
        ("group", "") => KeyPart::Group,
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
    // A plan tells the group of its subject.
    let plan = limit.plan.as_ref();
    let has = |part: &KeyPart| {
        has(part) || (*part == KeyPart::Group && plan.is_some_and(|it| has(&it.subject)))
    };
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
fn name(
    policy: &Policy,
    rules: &KeyRules,
    identities: &[Identity],
    tables: &Tables,
) -> Option<String> {
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
            KeyPart::Descriptor
            | KeyPart::DescriptorEntry { .. }
            | KeyPart::Group
            | KeyPart::Global => {}
        }
    }
    request.headers = &headers;
    request.attributes = &attributes;
    if !entries.is_empty() {
        request.descriptors = &descriptor;
    }
    let mut scratch = Scratch::default();
    let meeting = policy.meet_with(&request, rules, tables, &mut scratch);
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
