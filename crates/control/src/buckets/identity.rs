//! From identities to the bucket that a decision about them uses.

use super::plan_rate::unescape;
use crate::failure::Failure;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_config::key_part;
use tidegate_http::unix_seconds;
use tidegate_policy::client::{Client, RequestFacts};
use tidegate_policy::matching::KeyRules;
use tidegate_policy::plan::{PlanDocument, PlanTerms, Tables, UnsetShare};
use tidegate_policy::text::counted;
use tidegate_policy::{
    Descriptor, DescriptorHits, KeyPart, Limit, MissingIdentity, Policy, Request, Scratch,
};

/// Settings that determine the names of buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    pub(super) rules: KeyRules,
    pub(super) client: &'a Client,
    /// The loaded plans.
    pub(super) tables: &'a Tables,
}

/// Names that an operator may mean.
#[derive(Debug)]
pub(super) struct Names {
    /// The name that a decision uses.
    pub(super) bucket: String,
    /// Other names, in the order in which to try them.
    pub(super) others: Vec<String>,
    /// The subject of the limit's plan, if it has one and that is known.
    pub(super) subject: Option<String>,
}

/// Returns the names of the bucket of the one limit of `policy` for the identities in `given`.
pub(super) fn bucket(
    policy: &Policy,
    naming: Naming<'_>,
    given: &[String],
) -> Result<Names, Failure> {
    let Some(limit) = policy.limits.first() else {
        return Err(Failure::runtime("a policy without a limit"));
    };
    let (identities, refused) = known(naming.client, read(limit, given)?)?;
    check(limit, &identities, refused)?;
    names(policy, naming, &identities).ok_or_else(|| {
        Failure::input(format!(
            "limit `{}` has no such bucket: a value is empty or invalid",
            limit.name
        ))
    })
}

/// Parses `PART=VALUE` texts, and adds the identities that `client` finds in them. Returns the reason too if it
/// does not accept a token among them.
pub(super) fn given(
    client: &Client,
    given: &[String],
) -> Result<(Vec<KeyValue>, Option<&'static str>), Failure> {
    let identities = given.iter().map(|text| {
        named(text).ok_or_else(|| {
            // Without the value, which may be a secret.
            let what = match text.split_once('=') {
                Some((name, _)) => format!("`{name}` is not a part of a key"),
                None => "a key needs the name of its part".to_owned(),
            };
            Failure::input(format!(
                "{what}\n   help: write PART=VALUE, such as user=ann or attr:tenant=acme"
            ))
        })
    });
    let identities: Result<Vec<KeyValue>, Failure> = identities.collect();
    let identities = identities?;
    if let Some((part, _)) = identities.iter().find(|(_, value)| value.is_empty()) {
        let part = as_written(part);
        return Err(Failure::input(format!("`{part}` has no value")));
    }
    known(client, identities)
}

/// Checks the identities, and adds those that `client` finds in them. Returns the reason too if it does not
/// accept a token among them.
fn known(
    client: &Client,
    identities: Vec<KeyValue>,
) -> Result<(Vec<KeyValue>, Option<&'static str>), Failure> {
    check_address(&identities)?;
    Ok(learn(client, identities))
}

/// Returns the names that decisions use for `subject`, which an operator may have written in another
/// form: with a secret in place of its hash, or an address in place of its network. `None` if `subject`
/// does not have the form of this limit's subjects, or contains a hash already.
pub(super) fn respelled(policy: &Policy, naming: Naming<'_>, subject: &str) -> Option<Names> {
    let limit = policy.limits.first()?;
    let labels = labels(policy)?;
    let parts: Vec<&str> = match labels.as_slice() {
        [_] => vec![subject],
        _ => subject.split(',').collect(),
    };
    if parts.len() != limit.key.len() || limit.key.contains(&KeyPart::Descriptor) {
        return None;
    }
    let mut identities: Vec<KeyValue> = Vec::new();
    for ((part, label), text) in limit.key.iter().zip(&labels).zip(parts) {
        let rest = text.strip_prefix(label.as_str())?;
        if let Some(address) = rest.strip_prefix("~ip:") {
            identities.push((KeyPart::Ip, address.to_owned()));
        } else if *part != KeyPart::Global {
            let value = rest.strip_prefix(':').filter(|it| !it.starts_with('#'))?;
            let value = unescape(value).unwrap_or_else(|| value.to_owned());
            identities.push((part.clone(), value));
        }
    }
    check_address(&identities).ok()?;
    names(policy, naming, &identities)
}

/// Returns the names of the bucket of the one limit of `policy`; `None` if a value is empty or invalid.
pub(super) fn names(policy: &Policy, naming: Naming<'_>, identities: &[KeyValue]) -> Option<Names> {
    let limit = policy.limits.first()?;
    let bucket = match value_of(identities, &KeyPart::Group) {
        Some(group) => name_in_group(policy, &naming.rules, identities, &group),
        // Only a group depends on the plan. With the plan removed, subjects that it does not know, refuses
        // or does not limit have names too.
        None if !limit.key.contains(&KeyPart::Group) => {
            let policy = Policy::new(policy.name.clone(), policy.evaluate, vec![unplanned(limit)]);
            name(&policy, &naming.rules, identities, &[])
        }
        None => name(policy, &naming.rules, identities, naming.tables),
    }?;
    let plan = limit.plan.as_ref();
    Some(Names {
        others: by_hash(limit, &bucket, identities).into_iter().collect(),
        bucket,
        subject: plan.and_then(|plan| value_of(identities, &plan.subject)),
    })
}

/// Returns the name with the hashes that were given in place of secrets; `None` if none was.
fn by_hash(limit: &Limit, bucket: &str, identities: &[KeyValue]) -> Option<String> {
    let mut pieces = bucket.splitn(3, '/');
    let (policy, name, subject) = (pieces.next()?, pieces.next()?, pieces.next()?);
    let mut is_changed = false;
    let parts = limit
        .key
        .iter()
        .zip(subject.split(','))
        .map(|(part, text)| {
            let given = value_of(identities, part).and_then(|value| hash(&value));
            // With literal names, the digits themselves are in the place of a hash.
            let separator = if part.is_secret() { ":" } else { ":#" };
            match (text.split_once(separator), given) {
                (Some((label, _)), Some(hash)) => {
                    is_changed = true;
                    format!("{label}:#{hash}")
                }
                _ => text.to_owned(),
            }
        });
    let parts: Vec<String> = parts.collect();
    is_changed.then(|| format!("{policy}/{name}/{}", parts.join(",")))
}

/// Returns the digits of a hash as it is stored; the `#` may be missing, because shells take it for
/// the start of a comment.
pub(super) fn hash(value: &str) -> Option<String> {
    let digits = value.strip_prefix('#').unwrap_or(value);
    let is_hash = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then(|| digits.to_ascii_lowercase())
}

/// Adds the identities that `client` finds in the headers and the path, as for a request. Returns the
/// reason too if it does not accept a token among them.
fn learn(client: &Client, mut identities: Vec<KeyValue>) -> (Vec<KeyValue>, Option<&'static str>) {
    let path = value_of(&identities, &KeyPart::Path);
    let headers = identities.clone();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .filter_map(|(part, value)| match part {
            KeyPart::Header(name) => Some((name.as_str(), value.as_str())),
            _ => None,
        })
        .collect();
    if !client.learns_from(!headers.is_empty(), path.is_some()) {
        return (identities, None);
    }
    let learnt = client.identify_reported(&RequestFacts {
        peer: None,
        headers: headers.as_slice(),
        path: path.as_deref(),
        now: &unix_seconds,
    });
    let attributes = learnt.attributes.into_iter();
    let attributes = attributes.map(|(name, value)| (KeyPart::Attr(name.to_owned()), Some(value)));
    let learnt_parts = [
        (KeyPart::User, learnt.user),
        (KeyPart::ApiKey, learnt.api_key),
    ];
    for (part, value) in learnt_parts.into_iter().chain(attributes) {
        if let Some(value) = value
            && value_of(&identities, &part).is_none()
        {
            identities.push((part, value.into_owned()));
        }
    }
    (identities, learnt.token_refused)
}

fn value_of(identities: &[KeyValue], part: &KeyPart) -> Option<String> {
    let given = identities.iter().find(|(given, _)| given == part);
    given.map(|(_, value)| value.clone())
}

/// Returns the name for a subject of which only the group is known, as if a plan assigned it.
fn name_in_group(
    policy: &Policy,
    rules: &KeyRules,
    identities: &[KeyValue],
    group: &str,
) -> Option<String> {
    let plan = policy.limits.first()?.plan.as_ref()?;
    let mut identities = identities.to_vec();
    let value = value_of(&identities, &plan.subject);
    let subject = value.unwrap_or_else(|| {
        identities.push((plan.subject.clone(), "x".to_owned()));
        "x".to_owned()
    });
    let mut document = PlanDocument::default();
    document.subject(&subject, &[("group", group)]);
    let named = Some(plan.name.clone()).filter(|name| !name.is_requests());
    let terms = PlanTerms {
        rates: named.into_iter().collect(),
        ..PlanTerms::from(UnsetShare::Unlimited)
    };
    let table = document.table(terms).ok()?;
    let mut tables = vec![None; plan.source];
    tables.push(Some(Arc::new(table)));
    name(policy, rules, &identities, &tables)
}

/// Returns the label before the value in each part of the keys of the one limit of `policy`.
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
            // A plan may refuse an unknown subject, and then there would be no name.
            let policy = Policy::new(policy.name.clone(), policy.evaluate, vec![unplanned(limit)]);
            name(&policy, &rules, &identities, &[])
        }
    }?;
    let subject = name.splitn(3, '/').nth(2)?;
    let label = |part: &str| part.split(':').next().unwrap_or_default().to_owned();
    Some(subject.split(',').map(label).collect())
}

/// Returns a part of a key in the configuration's syntax.
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

pub(super) type KeyValue = (KeyPart, String);

/// Parses `PART=VALUE`, and values alone for the parts in their order.
fn read(limit: &Limit, given: &[String]) -> Result<Vec<KeyValue>, Failure> {
    let mut identities: Vec<KeyValue> = Vec::new();
    let mut alone = Vec::new();
    for text in given {
        match named(text) {
            Some(named) => identities.push(named),
            None => alone.push(text),
        }
    }
    let is_open = |part: &&KeyPart| {
        **part != KeyPart::Global && !identities.iter().any(|(named, _)| named == *part)
    };
    let open: Vec<KeyPart> = limit.key.iter().filter(is_open).cloned().collect();
    if alone.len() > open.len() {
        return Err(Failure::input(format!(
            "limit `{}` counts by {}: {} too many",
            limit.name,
            key_as_written(limit),
            counted(alone.len() - open.len(), "value", "values")
        )));
    }
    identities.extend(open.into_iter().zip(alone.into_iter().cloned()));
    Ok(identities)
}

/// Parses `PART=VALUE`.
fn named(text: &str) -> Option<KeyValue> {
    let (name, value) = text.split_once('=')?;
    Some((key_part(name)?, value.to_owned()))
}

/// Returns the parts of the key that are missing, if nothing replaces them.
pub(super) fn missing<'l>(
    limit: &'l Limit,
    identities: &'l [KeyValue],
) -> impl Iterator<Item = &'l KeyPart> {
    let has = |part: &KeyPart| identities.iter().any(|(given, _)| given == part);
    let stands_in = limit.missing == MissingIdentity::Address && has(&KeyPart::Ip);
    // A plan provides the group of its subject.
    let has_group = limit.plan.as_ref().is_some_and(|it| has(&it.subject));
    limit.key.iter().filter(move |part| {
        let has = has(part) || (**part == KeyPart::Group && has_group);
        **part != KeyPart::Global && !has && !stands_in
    })
}

/// Fails if a part of the key is missing, and nothing replaces it.
fn check(
    limit: &Limit,
    identities: &[KeyValue],
    refused: Option<&'static str>,
) -> Result<(), Failure> {
    let absent = missing(limit, identities).next();
    match absent {
        None => Ok(()),
        Some(part) => Err(Failure::input(format!(
            "limit `{}` counts by {}: the bucket key is missing{}\n   help: add --key {}=…",
            limit.name,
            key_as_written(limit),
            refused.map_or_else(String::new, |why| format!(
                " The token is not accepted: {why}."
            )),
            as_written(part)
        ))),
    }
}

fn check_address(identities: &[KeyValue]) -> Result<(), Failure> {
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
        [] => "nothing (one bucket for all)".to_owned(),
        parts => {
            let parts: Vec<String> = parts.iter().map(as_written).collect();
            format!("`{}`", parts.join(", "))
        }
    }
}

/// Returns the name that the matcher gives to the bucket.
fn name(
    policy: &Policy,
    rules: &KeyRules,
    identities: &[KeyValue],
    tables: &Tables,
) -> Option<String> {
    let mut request = Request::new();
    let (mut headers, mut attributes) = (Vec::new(), Vec::new());
    let entries = entries(identities);
    let descriptor = [Descriptor {
        entries: &entries,
        hits: DescriptorHits::AsRequest,
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
    let meeting = policy.match_with(&request, rules, tables, &mut scratch);
    let met = meeting.met.first()?;
    str::from_utf8(meeting.bucket(met)).ok().map(str::to_owned)
}

/// Returns the entries of the descriptor in `identities`: `k=v,k2=v2` if it is given as a whole. Of
/// several entries with one name, those that are not given are empty.
fn entries(identities: &[KeyValue]) -> Vec<(&str, &str)> {
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
