//! Parses keys that templates of the open layout generate: from a key to its subject.

use super::identity::labels;
use super::keys::escape_glob;
use super::name::{BucketName, named};
use tidegate::{Algorithm, OnChange};
use tidegate_config::Config;
use tidegate_policy::template::{KeyOf, Template, TemplatePiece, band_name};
use tidegate_policy::{Evaluate, Limit, Policy};

/// Returns the bucket that `key` belongs to, if a template of the configuration generates such keys.
pub(super) fn find(config: &Config, key: &str) -> Option<BucketName> {
    config.written().find_map(|policy| {
        let limits = policy.limits.iter();
        limits
            .filter_map(|limit| Some((limit, limit.template.as_ref()?)))
            .find_map(|(limit, template)| {
                let subject = subject(policy, limit, template, base(limit, key))?;
                Some(named(&policy.name, &limit.name, &subject))
            })
    })
}

/// Returns the limit whose buckets are all fields of the hash `key`.
pub(super) fn hash_of<'a>(config: &'a Config, key: &str) -> Option<&'a str> {
    config.written().find_map(|policy| {
        let mut limits = policy.limits.iter();
        let limit = limits.find(|limit| {
            matches!(limit.algorithm, Algorithm::FixedWindow(_))
                && base_glob(&policy.name, limit, None).is_some_and(|glob| glob == base(limit, key))
        })?;
        Some(limit.name.as_str())
    })
}

/// Returns a pattern, in the syntax of `SCAN` and `ACL`, that matches the keys that a template of the
/// limit generates, for one band or for all.
pub fn glob(policy: &str, limit: &Limit, band: Option<&str>) -> Option<String> {
    let glob = base_glob(policy, limit, band)?;
    Some(match limit.on_change() {
        OnChange::Reset => format!("{glob}~????????"),
        OnChange::Keep | OnChange::Scale => glob,
    })
}

/// Returns a key without the hash of its limit's numbers, if changed numbers use new keys.
fn base<'k>(limit: &Limit, key: &'k str) -> &'k str {
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|it| it.is_ascii_hexdigit());
    match key.rsplit_once('~') {
        Some((base, numbers)) if limit.on_change() == OnChange::Reset && is_number(numbers) => base,
        _ => key,
    }
}

/// Returns the pattern of a template, without that hash.
fn base_glob(policy: &str, limit: &Limit, band: Option<&str>) -> Option<String> {
    let pieces = limit.template.as_ref()?.pieces().iter();
    let pieces = pieces.map(|piece| match piece {
        TemplatePiece::Text(text) => escape_glob(text),
        TemplatePiece::Policy => policy.to_owned(),
        TemplatePiece::Limit => limit.name.clone(),
        TemplatePiece::Band => band.unwrap_or("*").to_owned(),
        TemplatePiece::Subject => subjects(policy, limit),
        TemplatePiece::Key | TemplatePiece::Part { .. } => "*".to_owned(),
    });
    Some(pieces.collect())
}

/// Returns a pattern for every subject of a limit: a label, followed by a value or its replacement.
fn subjects(policy: &str, limit: &Limit) -> String {
    let labels = labels(&alone(policy, limit)).unwrap_or_default();
    match labels.first().map(String::as_str) {
        Some("global") if labels.len() == 1 => "global".to_owned(),
        Some("global") | None => "*".to_owned(),
        Some(label) => format!("{}[:~]*", escape_glob(label)),
    }
}

/// Returns true if `key` belongs to this limit, and cannot belong to another.
pub(crate) fn is_only_of(config: &Config, policy: &str, limit: &str, key: &str) -> bool {
    let all = config.written().flat_map(|policy| {
        let limits = policy.limits.iter();
        limits.map(move |limit| (policy.name.as_str(), limit))
    });
    let mut owners = all.filter(|(policy, limit)| {
        let Some(template) = &limit.template else {
            return false;
        };
        let labels = labels(&alone(policy, limit)).unwrap_or_default();
        limit.shapes().iter().any(|band| {
            let names = KnownLabels {
                policy,
                limit: &limit.name,
                band: band_name(band),
                labels: &labels,
            };
            walk(template.pieces(), base(limit, key), &names, &mut Vec::new())
        })
    });
    let first = owners
        .next()
        .map(|(policy, limit)| (policy, limit.name.as_str()));
    first == Some((policy, limit)) && owners.next().is_none()
}

/// Returns the subject of a key, if it belongs to this limit.
fn subject(policy: &Policy, limit: &Limit, template: &Template, key: &str) -> Option<String> {
    let labels = labels(&alone(&policy.name, limit))?;
    limit.shapes().iter().find_map(|band| {
        let names = KnownLabels {
            policy: &policy.name,
            limit: &limit.name,
            band: band_name(band),
            labels: &labels,
        };
        let mut found = Vec::new();
        if !walk(template.pieces(), key, &names, &mut found) {
            return None;
        }
        let subject = assemble(&labels, &found)?;
        let of = KeyOf {
            policy: names.policy,
            limit: names.limit,
            subject: &subject,
            band: names.band,
        };
        // A literal value may contain commas, which are escaped in a subject.
        let plain = |text: &str| text.replace("%2C", ",");
        (plain(&template.render(&of)) == plain(key)).then_some(subject)
    })
}

/// Returns a policy with a limit of the same key and nothing else.
fn alone(policy: &str, limit: &Limit) -> Policy {
    let limit = Limit {
        key: limit.key.clone(),
        missing: limit.missing,
        algorithm: limit.algorithm,
        mode: limit.mode,
        shadowed: limit.shadowed,
        quota_mode: limit.quota_mode,
        charge: limit.charge,
        refundable: limit.refundable,
        on_failure: limit.on_failure,
        plan: limit.plan.clone(),
        ..Limit::new(limit.name.as_str())
    };
    Policy::new(policy.to_owned(), Evaluate::All, vec![limit])
}

/// The parts of a key that are known in advance.
struct KnownLabels<'a> {
    policy: &'a str,
    limit: &'a str,
    band: &'a str,
    /// The labels of the subject's parts.
    labels: &'a [String],
}

/// The text that matched a placeholder for the subject.
enum PlaceholderMatch<'a> {
    Subject(&'a str),
    Key(&'a str),
    Part(&'a str, &'a str),
}

/// Matches `text` with the rest of a template; the shortest match wins.
fn walk<'a>(
    pieces: &'a [TemplatePiece],
    text: &'a str,
    names: &KnownLabels<'_>,
    found: &mut Vec<PlaceholderMatch<'a>>,
) -> bool {
    let Some((piece, rest)) = pieces.split_first() else {
        return text.is_empty();
    };
    let known = match piece {
        TemplatePiece::Text(known) => known.as_str(),
        TemplatePiece::Policy => names.policy,
        TemplatePiece::Limit => names.limit,
        TemplatePiece::Band => names.band,
        TemplatePiece::Subject | TemplatePiece::Key | TemplatePiece::Part { .. } => {
            let ends = text.char_indices().map(|(at, _)| at).skip(1);
            return ends.chain([text.len()]).any(|end| {
                let Some((value, after)) = text.split_at_checked(end) else {
                    return false;
                };
                if *piece == TemplatePiece::Subject && !is_subject(value, names.labels) {
                    return false;
                }
                found.push(match piece {
                    TemplatePiece::Subject => PlaceholderMatch::Subject(value),
                    TemplatePiece::Part { label, .. } => PlaceholderMatch::Part(label, value),
                    _ => PlaceholderMatch::Key(value),
                });
                let fits = walk(rest, after, names, found);
                if !fits {
                    found.pop();
                }
                fits
            });
        }
    };
    text.strip_prefix(known)
        .is_some_and(|text| walk(rest, text, names, found))
}

/// Returns true if each part of `text` has the expected label.
fn is_subject(text: &str, labels: &[String]) -> bool {
    let parts: Vec<&str> = text.split(',').collect();
    let has_label = |(part, label): (&&str, &String)| match part.strip_prefix(label.as_str()) {
        Some("") => label == "global",
        Some(rest) => rest.starts_with([':', '~']),
        None => false,
    };
    parts.len() == labels.len() && parts.iter().zip(labels).all(has_label)
}

/// Assembles the subject from the matches.
fn assemble(labels: &[String], found: &[PlaceholderMatch<'_>]) -> Option<String> {
    for it in found {
        match (it, labels) {
            (PlaceholderMatch::Subject(subject), _) => return Some((*subject).to_owned()),
            (PlaceholderMatch::Key(value), [label]) => return Some(part(label, value)),
            (PlaceholderMatch::Key(values), labels) => {
                let values: Vec<&str> = values.split(':').collect();
                if values.len() != labels.len() {
                    // An address may contain the separator of values.
                    return None;
                }
                let parts = labels.iter().zip(values);
                let parts: Vec<_> = parts.map(|(label, value)| part(label, value)).collect();
                return Some(parts.join(","));
            }
            (PlaceholderMatch::Part(..), _) => {}
        }
    }
    let value = |label: &String| {
        found.iter().find_map(|it| match it {
            PlaceholderMatch::Part(of, value) if of == label => Some(part(label, value)),
            _ => None,
        })
    };
    let parts: Option<Vec<String>> = labels.iter().map(value).collect();
    Some(parts?.join(","))
}

/// Returns a label and a value in the form of a subject's part.
fn part(label: &str, value: &str) -> String {
    let value = &value.replace(',', "%2C");
    match (label, value.strip_prefix("%7E")) {
        ("global", _) => label.to_owned(),
        (label, Some(rest)) => format!("{label}:~{rest}"),
        (label, None) if value.starts_with('~') => format!("{label}{value}"),
        (label, None) => format!("{label}:{value}"),
    }
}
