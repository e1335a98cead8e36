//! A rule, and the rule set in a hash of Redis.

use super::band::{self, FluxgateBand};
use super::number::positive;
use crate::document::{ImportedFile, line};
use crate::map::{ImportMap, ImportMapFields, plain};
use tidegate_config::reading::{BANDS_MAX, ConfigValue, parse_key_part};
use tidegate_policy::text::{ConfigFault, NodeKind, TextSpan, closest};

pub(super) static RULE: ImportMapFields = ImportMapFields {
    what: "a rule",
    fields: &[
        "id",
        "name",
        "enabled",
        "scope",
        "keyStrategyId",
        "onLimitExceedPolicy",
        "ruleSetId",
        "bands",
        "attributes",
        "_id",
        "_class",
        "createdAt",
        "updatedAt",
    ],
};

pub(super) static RULE_SET: ImportMapFields = ImportMapFields {
    what: "a rule set",
    fields: &["id", "ruleSetId", "description", "rules", "ruleSets"],
};

static HASH: ImportMapFields = ImportMapFields {
    what: "a rule set",
    fields: &[
        "hash",
        "ruleSetId",
        "capacity",
        "windowSeconds",
        "keyStrategyId",
        "createdAt",
        "bands",
        "rules",
    ],
};

/// The key strategy of a hash that sets none.
pub(super) const BY_ADDRESS: &str = "clientIp";

/// The rule set of rules that name none.
const DEFAULT_SET: &str = "default";

/// The defaults of a hash.
const HASH_CAPACITY: u64 = 10;
const HASH_SECONDS: u64 = 60;

/// A rule, or a rule set without rules.
#[derive(Debug)]
pub(super) struct FluxgateRule {
    pub(super) set: String,
    /// The limit; `None` if the set has no rules.
    pub(super) limit: Option<FluxgateLimit>,
    /// The file and the line.
    pub(super) place: (String, usize),
}

/// The contents of a rule.
#[derive(Debug)]
pub(super) struct FluxgateLimit {
    pub(super) id: String,
    pub(super) enabled: bool,
    pub(super) scope: Scope,
    pub(super) waits: bool,
    pub(super) bands: Vec<FluxgateBand>,
}

/// The bucket key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Ip,
    User,
    ApiKey,
    /// The attribute with this name.
    Custom(String),
}

impl FluxgateRule {
    /// Returns a set without rules, for an import without any.
    pub(super) fn none(file: &str) -> Self {
        Self {
            set: DEFAULT_SET.to_owned(),
            limit: None,
            place: (file.to_owned(), 1),
        }
    }
}

/// Reads a rule of the set `of`, unless it names another; `None` after an error.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
    of: Option<&str>,
) -> Option<FluxgateRule> {
    let map = ImportMap::read(document, value, &RULE)?;
    let set = map
        .text(document, "ruleSetId")
        .or(of)
        .unwrap_or(DEFAULT_SET);
    let id = id(document, &map);
    let scope = scope(document, &map);
    let waits = waits(document, &map);
    let enabled = map.said("enabled");
    let enabled = enabled.is_none_or(|value| document.flag(&value));
    let bands = bands(document, &map);
    note_extras(document, &map);
    let rule = |limit| FluxgateRule {
        set: set.to_owned(),
        limit,
        place: (document.file().to_owned(), line(value.node.place)),
    };
    let (id, scope, waits, bands) = (id?, scope?, waits?, bands?);
    if bands.is_empty() {
        let rule = rule(None);
        let text = format!(
            "rule `{id}` is skipped: it has no bands and limits nothing in FluxGate \
                either"
        );
        document.warn(value.node.place, text);
        return Some(rule);
    }
    Some(rule(Some(FluxgateLimit {
        id,
        enabled,
        scope,
        waits,
        bands,
    })))
}

/// Returns a rule set without rules.
pub(super) fn none(
    document: &ImportedFile<'_>,
    value: &ConfigValue<'_>,
    id: Option<&str>,
) -> Option<FluxgateRule> {
    Some(FluxgateRule {
        set: id?.to_owned(),
        limit: None,
        place: (document.file().to_owned(), line(value.node.place)),
    })
}

/// Reads a rule set from a hash of Redis: a rule with one band.
pub(super) fn read_hash(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
) -> Option<FluxgateRule> {
    let map = ImportMap::read(document, value, &HASH)?;
    let set = map.text(document, "ruleSetId").or_else(|| {
        let hash = map.text(document, "hash")?;
        Some(hash.rsplit(':').next().unwrap_or(hash)).filter(|id| !id.is_empty())
    });
    if set.is_none() {
        let fault = ConfigFault::new("a rule set needs `ruleSetId`");
        document.error(map.spot(), fault);
    }
    let mut number = |name: &str, usual: u64| match map.said(name) {
        Some(value) => positive(document, &value),
        None => Some(usual),
    };
    let capacity = number("capacity", HASH_CAPACITY);
    let seconds = number("windowSeconds", HASH_SECONDS);
    let strategy = map.text(document, "keyStrategyId").unwrap_or(BY_ADDRESS);
    let scope = scope_of(document, value.node.place, strategy);
    let band = FluxgateBand {
        capacity: capacity?,
        seconds: seconds?,
        label: None,
    };
    let band = band.check(document, value)?;
    let set = set?;
    Some(FluxgateRule {
        set: set.to_owned(),
        limit: Some(FluxgateLimit {
            id: format!("{set}-rule"),
            enabled: true,
            scope,
            waits: false,
            bands: vec![band],
        }),
        place: (document.file().to_owned(), line(value.node.place)),
    })
}

/// Returns the bucket key for the key strategy of a hash.
pub(super) fn scope_of(document: &mut ImportedFile<'_>, place: TextSpan, strategy: &str) -> Scope {
    match strategy {
        "userId" => Scope::User,
        "apiKey" => Scope::ApiKey,
        BY_ADDRESS | "ip" => Scope::Ip,
        other => {
            let text = format!(
                "`keyStrategyId` is {}, which counts by address, as in FluxGate",
                ConfigFault::quote(other)
            );
            document.warn(place, text);
            Scope::Ip
        }
    }
}

/// Reads the id of a rule: `id`, or `_id` if that is a text.
fn id(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) -> Option<String> {
    if let Some(value) = map.said("id") {
        return document.text(&value).map(str::to_owned);
    }
    let own = map.said("_id").and_then(|value| value.node.as_text());
    if own.is_none() {
        document.error(map.spot(), ConfigFault::new("a rule needs `id`"));
    }
    own.map(str::to_owned)
}

fn scope(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) -> Option<Scope> {
    const SCOPES: [(&str, Scope); 4] = [
        ("GLOBAL", Scope::Global),
        ("PER_IP", Scope::Ip),
        ("PER_USER", Scope::User),
        ("PER_API_KEY", Scope::ApiKey),
    ];
    let Some(value) = map.said("scope") else {
        // The default of FluxGate.
        return Some(Scope::ApiKey);
    };
    let word = document.text(&value)?;
    if plain(word) == "custom" {
        return custom(document, map, &value);
    }
    let known = SCOPES.iter().find(|(name, _)| plain(name) == plain(word));
    if known.is_none() {
        let fault = ConfigFault::new(format!("{} is not a scope", ConfigFault::quote(word)));
        let names = SCOPES.iter().map(|(name, _)| *name).chain(["CUSTOM"]);
        let help = match closest(word, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "expected GLOBAL, PER_IP, PER_USER, PER_API_KEY or CUSTOM".to_owned(),
        };
        document.error(value.spot(), fault.help(help));
    }
    known.map(|(_, scope)| scope.clone())
}

/// Reads the scope `CUSTOM`, which counts by the attribute that `keyStrategyId` names.
fn custom(
    document: &mut ImportedFile<'_>,
    map: &ImportMap<'_>,
    scope: &ConfigValue<'_>,
) -> Option<Scope> {
    let Some(value) = map.said("keyStrategyId") else {
        let fault = ConfigFault::new("`CUSTOM` needs `keyStrategyId`, the name of an attribute");
        document.error(scope.spot(), fault);
        return None;
    };
    let name = document.text(&value)?;
    if let Err(fault) = parse_key_part(&format!("attr:{name}")) {
        document.error(value.spot(), fault);
        return None;
    }
    Some(Scope::Custom(name.to_owned()))
}

/// Returns true if requests that do not fit wait. Default: they are refused.
fn waits(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) -> Option<bool> {
    let Some(value) = map.said("onLimitExceedPolicy") else {
        return Some(false);
    };
    let word = document.text(&value)?;
    match plain(word).as_str() {
        "rejectrequest" | "reject" => Some(false),
        "waitforrefill" | "wait" => Some(true),
        _ => {
            let message = format!(
                "{} is not an `onLimitExceedPolicy`",
                ConfigFault::quote(word)
            );
            let fault =
                ConfigFault::new(message).help("expected REJECT_REQUEST or WAIT_FOR_REFILL");
            document.error(value.spot(), fault);
            None
        }
    }
}

/// Reads the bands of a rule, possibly none; `None` after an error.
fn bands(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) -> Option<Vec<FluxgateBand>> {
    let Some(list) = map.said("bands") else {
        return Some(Vec::new());
    };
    let NodeKind::List(_) = &list.node.kind else {
        document.refuse(&list, "a list");
        return None;
    };
    band_list(document, &list)
}

/// Reads the bands of a list; `None` after an error.
pub(super) fn band_list(
    document: &mut ImportedFile<'_>,
    list: &ConfigValue<'_>,
) -> Option<Vec<FluxgateBand>> {
    let items = document.items(list);
    if let Some(first) = items.get(BANDS_MAX) {
        let message = format!("a rule has at most {BANDS_MAX} bands here");
        document.error(first.spot(), ConfigFault::new(message));
    }
    let bands: Vec<Option<FluxgateBand>> =
        items.iter().map(|it| band::read(document, it)).collect();
    bands.into_iter().collect()
}

fn note_extras(document: &mut ImportedFile<'_>, map: &ImportMap<'_>) {
    for (field, why) in [
        ("name", "the limit is named after the rule's `id`"),
        ("attributes", "limits have no such field"),
    ] {
        let setting = map.said(field).filter(|value| match &value.node.kind {
            NodeKind::Map(entries) => !entries.is_empty(),
            _ => true,
        });
        if let Some(value) = setting {
            document.note(value.node.place, format!("`{field}` is skipped: {why}"));
        }
    }
}
