//! Policies, routes and consumers, in the form of the admin service.

use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile, bad_value, line};
use crate::map::{AMOUNT_MAX, ImportMap, ImportMapFields, positive};
use tidegate_config::reading::ConfigValue;
use tidegate_core::Algorithm;
use tidegate_policy::band::Band;
use tidegate_policy::matching::PathPattern;
use tidegate_policy::text::{ConfigFault, NodeKind, closest};

static POLICY: ImportMapFields = ImportMapFields {
    what: "a policy",
    fields: &[
        "id",
        "name",
        "description",
        "requestsPerSecond",
        "burstSize",
        "usageCount",
        "createdBy",
        "createdAt",
        "updatedAt",
    ],
};

static CONSUMER: ImportMapFields = ImportMapFields {
    what: "the limit of a consumer",
    fields: &[
        "id",
        "consumerId",
        "requestsPerSecond",
        "burstSize",
        "createdBy",
        "createdAt",
        "updatedAt",
    ],
};

static ROUTE: ImportMapFields = ImportMapFields {
    what: "a route",
    fields: &[
        "id",
        "path",
        "upstreamUrl",
        "methods",
        "description",
        "status",
        "rateLimitId",
        "rateLimit",
        "authRequired",
        "allowedConsumers",
        "createdBy",
        "creatorUsername",
        "createdAt",
        "updatedAt",
        "submittedAt",
        "approvedBy",
        "approvedAt",
        "approverUsername",
        "rejectedBy",
        "rejectedAt",
        "rejectorUsername",
        "rejectionReason",
    ],
};

/// All items found.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) policies: Vec<ImportedPolicy>,
    pub(super) consumers: Vec<ImportedPolicy>,
    pub(super) routes: Vec<ImportedRoute>,
    /// Policies that are embedded in routes.
    embedded: Vec<ImportedPolicy>,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ItemKind {
    Policy,
    Consumer,
    Route,
}

/// A policy, or the limit of a consumer.
#[derive(Debug)]
pub(super) struct ImportedPolicy {
    /// The id that routes refer to; for a consumer's limit, the consumer's id.
    pub(super) id: String,
    pub(super) name: String,
    /// The rate, in the syntax of the configuration.
    pub(super) rate: String,
    pub(super) place: (String, usize),
}

/// A route.
#[derive(Debug)]
pub(super) struct ImportedRoute {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) methods: Vec<String>,
    pub(super) upstream: String,
    /// The policy of the route.
    pub(super) policy: Option<String>,
    pub(super) place: (String, usize),
}

/// Reads an item of any kind.
pub(super) fn read(document: &mut ImportedFile<'_>, item: &ConfigValue<'_>, items: &mut Items) {
    match kind(item) {
        ItemKind::Consumer => {
            let limit = policy(document, item, &CONSUMER, "consumerId");
            items.consumers.extend(limit);
        }
        ItemKind::Route => {
            let route = route(document, item, &mut items.embedded);
            items.routes.extend(route);
        }
        ItemKind::Policy => {
            let policy = policy(document, item, &POLICY, "name");
            items.policies.extend(policy);
        }
    }
}

/// Returns the kind of an item, recognized by its fields.
pub(super) fn kind(item: &ConfigValue<'_>) -> ItemKind {
    let has = |name: &str| item.node.get(name).is_some();
    if has("consumerId") {
        ItemKind::Consumer
    } else if has("path") || has("upstreamUrl") {
        ItemKind::Route
    } else {
        ItemKind::Policy
    }
}

/// Returns the id of an item among those of its kind. For a consumer's limit it is the consumer, for a
/// policy without an id its name.
pub(super) fn id<'v>(item: &ConfigValue<'v>) -> Option<&'v str> {
    let fields: &[&str] = match kind(item) {
        ItemKind::Consumer => &["consumerId"],
        ItemKind::Route => &["id"],
        ItemKind::Policy => &["id", "name"],
    };
    let mut texts = fields
        .iter()
        .filter_map(|field| match &item.node.get(field)?.kind {
            NodeKind::Text(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
    texts.next()
}

impl ItemKind {
    /// Returns the singular for messages.
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Policy => "the policy",
            Self::Consumer => "the limit of the consumer",
            Self::Route => "the route",
        }
    }

    /// Returns the plural for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Policy => "policies",
            Self::Consumer => "limits of consumers",
            Self::Route => "routes",
        }
    }
}

impl Items {
    /// Adds the policies that are embedded in routes and not listed separately.
    pub(super) fn settle(&mut self) {
        for policy in std::mem::take(&mut self.embedded) {
            if !self.policies.iter().any(|known| known.id == policy.id) {
                self.policies.push(policy);
            }
        }
    }
}

fn policy(
    document: &mut ImportedFile<'_>,
    item: &ConfigValue<'_>,
    known: &ImportMapFields,
    name: &str,
) -> Option<ImportedPolicy> {
    let map = ImportMap::read(document, item, known)?;
    let mut number = |field: &str| {
        let value = map.required(document, field, known)?;
        positive(document, &value, AMOUNT_MAX)
    };
    let (rate, burst) = (number("requestsPerSecond"), number("burstSize"));
    let named = map.required(document, name, known);
    let named = named.and_then(|value| text(document, &value));
    let id = map.text(document, "id").map(str::to_owned);
    let rate = format!("{}/s burst {}", rate?, burst?);
    if let Err(why) = Band::parse(&rate, Algorithm::TokenBucket) {
        document.error(item.spot(), ConfigFault::new(why));
        return None;
    }
    let name = named?;
    Some(ImportedPolicy {
        id: id.unwrap_or_else(|| name.clone()),
        name,
        rate,
        place: (document.file().to_owned(), line(item.node.place)),
    })
}

fn route(
    document: &mut ImportedFile<'_>,
    item: &ConfigValue<'_>,
    embedded: &mut Vec<ImportedPolicy>,
) -> Option<ImportedRoute> {
    let map = ImportMap::read(document, item, &ROUTE)?;
    let mut required = |field: &str| {
        let value = map.required(document, field, &ROUTE)?;
        Some((text(document, &value)?, value))
    };
    let id = required("id");
    let path = required("path");
    let upstream = required("upstreamUrl");
    let path = path.and_then(|(path, value)| pattern(document, path, &value));
    let methods = map.said("methods").map_or_else(Vec::new, |value| {
        let items = document.items(&value);
        let methods = items.iter().filter_map(|it| text(document, it));
        methods.collect()
    });
    let status = map.text(document, "status").unwrap_or("published");
    if !status.eq_ignore_ascii_case("published") {
        let text = format!("a route that is {} is skipped", ConfigFault::quote(status));
        document.note(item.node.place, text);
        return None;
    }
    if map
        .said("authRequired")
        .is_some_and(|value| document.flag(&value))
    {
        let text = "`authRequired` is skipped: the upstream, or a limit with `missing: refuse`, \
            refuses unknown clients";
        document.note(item.node.place, text);
    }
    if let Some(value) = map.said("allowedConsumers") {
        let text = "`allowedConsumers` is skipped: use a guard to refuse consumers";
        document.note(value.node.place, text);
    }
    let policy = carried(document, &map, embedded);
    Some(ImportedRoute {
        id: id?.0,
        path: path?,
        methods,
        upstream: upstream?.0,
        policy,
        place: (document.file().to_owned(), line(item.node.place)),
    })
}

/// Returns the policy of a route: by `rateLimitId`, or embedded in the route.
fn carried(
    document: &mut ImportedFile<'_>,
    route: &ImportMap<'_>,
    embedded: &mut Vec<ImportedPolicy>,
) -> Option<String> {
    let named = route.text(document, "rateLimitId").map(str::to_owned);
    let Some(value) = route.said("rateLimit") else {
        return named;
    };
    let has = |name: &str| value.node.get(name).is_some();
    if has("requestsPerSecond") || has("burstSize") {
        let name = if has("name") { "name" } else { "id" };
        let mut policy = policy(document, &value, &POLICY, name)?;
        if let Some(named) = named {
            policy.id = named;
        }
        let id = policy.id.clone();
        embedded.push(policy);
        return Some(id);
    }
    let own = ImportMap::read(document, &value, &POLICY)?.text(document, "id");
    let policy = named.or_else(|| own.map(str::to_owned));
    if policy.is_none() {
        let fault = ConfigFault::new("`rateLimit` has neither a policy nor a rate");
        let help = "expected `id`, or `requestsPerSecond` and `burstSize`";
        document.error(value.spot(), fault.help(help));
    }
    policy
}

/// Reads a path. It matches itself and all paths below it, as a Tidegate pattern does.
fn pattern(
    document: &mut ImportedFile<'_>,
    path: String,
    value: &ConfigValue<'_>,
) -> Option<String> {
    let fault = match PathPattern::parse(&path) {
        Ok(_) if path.contains(['*', '$']) => {
            ConfigFault::new("the gateway allows no `*` and `$` in a path")
        }
        Ok(_) => return Some(path),
        Err(why) => ConfigFault::new(why),
    };
    document.error(value.spot(), fault.help("for example \"/api/orders\""));
    None
}

fn text(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let text = document.text(value)?;
    if let Some(fault) = bad_value(text) {
        document.error(value.spot(), fault);
        return None;
    }
    Some(text.to_owned())
}

/// Checks that every policy that a route refers to exists.
pub(super) fn check(items: &Items, wrong: &mut ImportErrors) {
    for route in &items.routes {
        let Some(id) = &route.policy else { continue };
        if items.policies.iter().any(|policy| policy.id == *id) {
            continue;
        }
        let fault = ConfigFault::new(format!(
            "route {} refers to an unknown policy {}",
            ConfigFault::quote(&route.id),
            ConfigFault::quote(id)
        ));
        let known = items.policies.iter().map(|policy| policy.id.as_str());
        let help = match closest(id, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "import the list of policies together with the list of routes".to_owned(),
        };
        let nowhere = SourceFile {
            name: route.place.0.clone(),
            text: String::new(),
        };
        ImportedFile::add_error(&nowhere, route.place.1, fault.help(help), wrong);
    }
}
