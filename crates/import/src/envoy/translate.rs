//! Translates a domain into a policy.

use super::descriptor::{DescriptorLevel, DescriptorLimit};
use super::rate::EnvoyRate;
use super::{Domain, EnvoyOptions};
use crate::document::ImportedFile;
use crate::draft::{
    AlgorithmDraft, DescriptorStep, KeyDraft, LimitDraft, PolicyDraft, RateDraft, RequestScope,
};
use crate::names::{self, NameRequest};
use crate::note::ImportNotes;
use tidegate_config::reading::{ConfigValue, KEY_PARTS_MAX, LIMITS_MAX};
use tidegate_policy::text::ConfigFault;

/// The name of the limit that counts the limits which requests carry themselves.
const OVERRIDE: &str = "override";

/// The note for every domain whose limits are decided together.
const TOGETHER: &str = "limits of one call are decided together (`evaluate: all`): a refused \
    call without stated hits charges no limit; `--evaluate each` counts each limit separately, \
    as envoyproxy/ratelimit does";

/// Reports a domain with too many limits.
pub(super) fn check(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
    count: usize,
    domain: &str,
) {
    if count > LIMITS_MAX {
        let message =
            format!("domain '{domain}' has {count} limits; at most {LIMITS_MAX} are supported");
        document.error(value.key_spot(), ConfigFault::new(message));
    }
}

/// Returns the policy of a domain.
pub(super) fn policy(
    domain: Domain,
    name: String,
    options: EnvoyOptions,
    notes: &mut ImportNotes,
) -> PolicyDraft {
    let quota = domain.found.iter().find(|found| found.quota);
    if let Some(found) = quota
        && !options.each
    {
        let text = format!(
            "`quota_mode` needs `evaluate: each`: every limit of domain '{}' counts separately",
            domain.name
        );
        notes.add(spot(found), text);
    }
    let names = names_of(&domain.found);
    let each = options.each || quota.is_some();
    if !each {
        notes.add((&domain.place.0, domain.place.1), TOGETHER);
    }
    let mut limits: Vec<LimitDraft> = domain
        .found
        .iter()
        .zip(&names)
        .map(|(found, name)| limit(found, name, notes))
        .collect();
    for (limit, found) in limits.iter_mut().zip(&domain.found) {
        limit.replaces = replaced(found, &domain, &names, notes);
    }
    if limits.is_empty() {
        let text = format!(
            "domain '{}' has no descriptors: only limits sent with requests apply",
            domain.name
        );
        notes.add((&domain.place.0, domain.place.1), text);
        limits.push(LimitDraft::for_no_request());
    }
    PolicyDraft {
        name,
        domain: domain.name,
        evaluate: if each { "each" } else { "all" },
        charge: options.charge,
        limits,
    }
}

fn spot(found: &DescriptorLimit) -> (&str, usize) {
    (&found.place.0, found.place.1)
}

/// Returns the names of the limits.
fn names_of(found: &[DescriptorLimit]) -> Vec<String> {
    let wanted = found.iter().map(|found| {
        let steps = found.path.iter().map(|level| &level.step);
        let of = names::of(steps.map(|step| (step.key.as_str(), step.value.as_deref())));
        let given = found.limit.as_ref().and_then(|it| it.name.as_ref());
        match given {
            Some(name) => NameRequest::given_to(name, of),
            None => NameRequest::made_up(made_up(found), of),
        }
    });
    names::all(&wanted.collect::<Vec<_>>(), &[OVERRIDE])
}

/// Makes up a name from the path, with a suffix if the limit lets every request pass.
fn made_up(found: &DescriptorLimit) -> String {
    let steps = found.path.iter().map(|level| &level.step);
    let path = names::made_up(steps.map(|step| (step.key.as_str(), step.value.as_deref())));
    match found.limit {
        Some(_) => path,
        None => format!("{path}-allowed"),
    }
}

fn limit(found: &DescriptorLimit, name: &str, notes: &mut ImportNotes) -> LimitDraft {
    let rate = found.limit.as_ref().map(|limit| limit.rate);
    let rates = match rate {
        Some(EnvoyRate::Of { amount, unit }) => vec![RateDraft {
            text: format!("{amount}/{unit}"),
            label: None,
        }],
        _ => Vec::new(),
    };
    let (shadow, combines_any) = match (found.shadow, found.quota) {
        _ if found.limit.is_none() => (false, false),
        (true, quota) => {
            if quota {
                let text = "`quota_mode` is skipped, because `shadow_mode` is set: a limit in \
                    shadow mode never refuses";
                notes.warn(spot(found), text);
            }
            (!rates.is_empty(), false)
        }
        (false, any) => (false, any),
    };
    LimitDraft {
        whom: RequestScope::Path(found.path.iter().map(|level| level.step.clone()).collect()),
        key: key(&found.path),
        rates,
        shadow,
        combines_any,
        ..LimitDraft::new(name.to_owned(), AlgorithmDraft::Windows("clock"))
    }
}

/// Returns the key: the combination of the values that the path leaves open and that share no bucket.
fn key(path: &[DescriptorLevel]) -> KeyDraft {
    let mut parts = Vec::new();
    for (at, level) in path.iter().enumerate() {
        if level.is_open() {
            parts.push(part(path, at, &level.step));
        }
    }
    let is_shared = path.iter().any(|level| level.is_shared);
    if parts.is_empty() {
        KeyDraft::Global
    } else if parts.len() > KEY_PARTS_MAX && !is_shared {
        // Fixed values do not distinguish requests, so the whole descriptor is an equivalent key.
        KeyDraft::Descriptor
    } else {
        KeyDraft::Parts {
            parts,
            or_skip: false,
        }
    }
}

/// Returns the key part of an entry, with its number if its key occurs more than once.
fn part(path: &[DescriptorLevel], at: usize, step: &DescriptorStep) -> String {
    let same = |level: &&DescriptorLevel| level.step.key == step.key;
    // With a `#` in the key, a number at its end would be read as the number of the entry.
    if path.iter().filter(same).count() == 1 && !step.key.contains('#') {
        return format!("descriptor:{}", step.key);
    }
    let before = path.iter().take(at).filter(same).count();
    format!("descriptor:{}#{}", step.key, before.saturating_add(1))
}

/// Returns the limits of the domain that this one replaces.
fn replaced(
    found: &DescriptorLimit,
    domain: &Domain,
    names: &[String],
    notes: &mut ImportNotes,
) -> Vec<String> {
    let Some(limit) = &found.limit else {
        return Vec::new();
    };
    let mut replaced: Vec<String> = Vec::new();
    for (theirs, line) in &limit.replaces {
        let is_meant = |other: &DescriptorLimit| {
            let other = other.limit.as_ref().and_then(|limit| limit.name.as_ref());
            other == Some(theirs)
        };
        let all = domain.found.iter().zip(names);
        let meant: Vec<&String> = all
            .filter(|(other, _)| is_meant(other))
            .map(|(_, name)| name)
            .collect();
        if meant.is_empty() {
            let text = format!(
                "`{theirs}` is skipped: domain '{}' has no limit with this name",
                domain.name
            );
            notes.warn((&found.place.0, *line), text);
        }
        for name in meant {
            if !replaced.contains(name) {
                replaced.push(name.clone());
            }
        }
    }
    replaced
}
