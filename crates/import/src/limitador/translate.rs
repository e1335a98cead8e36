//! Translates namespaces into policies.

use super::limit::LimitadorLimit;
use crate::document::{ImportedFile, line};
use crate::draft::{AlgorithmDraft, KeyDraft, LimitDraft, PolicyDraft, RateDraft, RequestScope};
use crate::names::{self, NameRequest};
use std::collections::BTreeSet;
use tidegate_config::reading::{BANDS_MAX, KEY_PARTS_MAX, LIMITS_MAX, POLICIES_MAX};
use tidegate_core::{Algorithm, Align};
use tidegate_policy::band::Band;
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::ConfigFault;

/// The maximum number of entries in a condition of the configuration.
const ENTRIES_MAX: usize = 16;

/// Limits that differ only in their windows. They become one limit with several bands.
type WindowVariants<'v> = Vec<LimitadorLimit<'v>>;

/// Returns the policies for all limits, in the order in which namespaces first appear.
pub(super) fn policies(
    document: &mut ImportedFile<'_>,
    limits: Vec<LimitadorLimit<'_>>,
    charge: ChargeTime,
) -> Vec<PolicyDraft> {
    let mut namespaces: Vec<(String, Vec<WindowVariants<'_>>)> = Vec::new();
    for limit in limits {
        check(document, &limit);
        let at = namespaces
            .iter()
            .position(|(namespace, _)| *namespace == limit.namespace);
        let at = at.unwrap_or_else(|| {
            namespaces.push((limit.namespace.clone(), Vec::new()));
            namespaces.len().saturating_sub(1)
        });
        if let Some((_, all)) = namespaces.get_mut(at) {
            add(document, all, limit);
        }
    }
    if namespaces.len() > POLICIES_MAX {
        refuse_too_many(document, &namespaces);
    }
    let wanted = namespaces
        .iter()
        .map(|(namespace, _)| NameRequest::given(namespace));
    let names = names::all(&wanted.collect::<Vec<_>>(), &["none"]);
    let namespaces = names.into_iter().zip(namespaces);
    namespaces
        .map(|(name, (namespace, limits))| policy(document, (name, namespace), limits, charge))
        .collect()
}

fn refuse_too_many(
    document: &mut ImportedFile<'_>,
    namespaces: &[(String, Vec<WindowVariants<'_>>)],
) {
    let count = namespaces.len();
    let message = format!("there are {count} namespaces; at most {POLICIES_MAX} are supported");
    let first = namespaces
        .get(POLICIES_MAX)
        .and_then(|(_, all)| all.first());
    if let Some(limit) = first.and_then(|alike| alike.first()) {
        document.error(limit.value.spot(), ConfigFault::new(message));
    }
}

/// Reports a limit that exceeds the bounds of the configuration.
fn check(document: &mut ImportedFile<'_>, limit: &LimitadorLimit<'_>) {
    let namespace = &limit.namespace;
    let is_printable = !namespace.chars().any(char::is_control) && namespace.trim() == namespace;
    let faults = [
        (!is_printable || namespace.chars().count() > 256)
            .then(|| "a namespace has up to 256 printable characters".to_owned()),
        (limit.variables.len() > KEY_PARTS_MAX)
            .then(|| format!("a limit has at most {KEY_PARTS_MAX} variables here")),
        (limit.entries.len() > ENTRIES_MAX)
            .then(|| format!("a limit has at most {ENTRIES_MAX} entries here")),
        Band::parse(&rate(limit), Algorithm::FixedWindow(Align::FirstRequest)).err(),
    ];
    for fault in faults.into_iter().flatten() {
        document.error(limit.value.spot(), ConfigFault::new(fault));
    }
}

/// Adds a limit to the group of those like it.
fn add<'v>(
    document: &mut ImportedFile<'_>,
    all: &mut Vec<WindowVariants<'v>>,
    limit: LimitadorLimit<'v>,
) {
    let is_like = |alike: &&mut WindowVariants<'_>| {
        alike.first().is_some_and(|first| {
            first.entries == limit.entries && first.variables == limit.variables
        })
    };
    let Some(alike) = all.iter_mut().find(is_like) else {
        all.push(vec![limit]);
        return;
    };
    if let Some(twin) = alike.iter().find(|other| other.seconds == limit.seconds) {
        let fault = ConfigFault::new("this limit differs from another only in `max_value`");
        let help = format!(
            "the other is on line {}; limitador keeps the later one: remove one of them",
            line(twin.value.node.place)
        );
        document.error(limit.value.spot(), fault.help(help));
    } else if alike.len() == BANDS_MAX {
        let message = format!("more than {BANDS_MAX} limits differ only in their windows");
        document.error(limit.value.spot(), ConfigFault::new(message));
    } else {
        alike.push(limit);
    }
}

fn policy(
    document: &mut ImportedFile<'_>,
    (name, namespace): (String, String),
    limits: Vec<WindowVariants<'_>>,
    charge: ChargeTime,
) -> PolicyDraft {
    if let Some(alike) = limits.get(LIMITS_MAX).and_then(|alike| alike.first()) {
        let count = limits.len();
        let message = format!(
            "namespace `{namespace}` has {count} limits; at most {LIMITS_MAX} are supported"
        );
        document.error(alike.value.spot(), ConfigFault::new(message));
    }
    let wanted: Vec<NameRequest> = limits.iter().map(|alike| wanted(alike)).collect();
    let names = names::all(&wanted, &["override"]);
    let limits = names.into_iter().zip(limits);
    let limits = limits.map(|(name, alike)| limit(name, alike));
    PolicyDraft {
        limits: limits.collect(),
        name,
        domain: namespace,
        evaluate: "all",
        charge,
    }
}

fn wanted(alike: &[LimitadorLimit<'_>]) -> NameRequest {
    let of = alike.first().map_or_else(String::new, |first| {
        let entries = first.entries.iter();
        let entries = entries.map(|(name, value)| (name.as_str(), value.as_deref()));
        let variables = first.variables.iter().map(|name| (name.as_str(), None));
        names::of(entries.chain(variables))
    });
    match alike.iter().find_map(|it| it.name.as_deref()) {
        Some(name) => NameRequest::given_to(name, of),
        None => NameRequest::made_up(made_up(alike), of),
    }
}

/// Makes up a name, such as `req.method-POST.user_id`.
fn made_up(alike: &[LimitadorLimit<'_>]) -> String {
    let Some(first) = alike.first() else {
        return String::new();
    };
    let entries = first.entries.iter();
    let entries = entries.map(|(name, value)| (name.as_str(), value.as_deref()));
    match names::made_up(entries) {
        name if name.is_empty() => "all".to_owned(),
        name => name,
    }
}

fn limit(name: String, alike: WindowVariants<'_>) -> LimitDraft {
    let labels: BTreeSet<Option<String>> = alike.iter().map(label).collect();
    let are_labels = labels.len() == alike.len() && !labels.contains(&None);
    let rates = alike.iter().map(|limit| RateDraft {
        text: rate(limit),
        label: label(limit).filter(|_| are_labels),
    });
    let rates = rates.collect();
    let (entries, variables) = alike
        .into_iter()
        .next()
        .map(|first| (first.entries, first.variables))
        .unwrap_or_default();
    let parts: Vec<String> = variables
        .iter()
        .map(|name| format!("descriptor:{name}"))
        .collect();
    LimitDraft {
        whom: if entries.is_empty() {
            RequestScope::Everybody
        } else {
            let pairs = entries.into_iter();
            RequestScope::Holds(
                pairs
                    .map(|(name, value)| (name, value.unwrap_or_default()))
                    .collect(),
            )
        },
        key: if parts.is_empty() {
            KeyDraft::Global
        } else {
            KeyDraft::Parts {
                parts,
                or_skip: true,
            }
        },
        rates,
        ..LimitDraft::new(name, AlgorithmDraft::Windows("first-request"))
    }
}

fn rate(limit: &LimitadorLimit<'_>) -> String {
    format!("{}/{}s", limit.amount, limit.seconds)
}

/// Returns the name of a limit, if it is a valid label of a band.
fn label(limit: &LimitadorLimit<'_>) -> Option<String> {
    tidegate_policy::text::scalar::name(limit.name.as_deref()?).ok()
}
