//! Translates rule sets into policies.

use super::FluxgateFiles;
use super::band::FluxgateBand;
use super::rule::{FluxgateLimit, FluxgateRule, Scope};
use super::settings::{FluxgateSettings, MongoDb, WaitSetting};
use crate::SourceFile;
use crate::base::{SectionWriter, milliseconds};
use crate::document::{ImportErrors, ImportedFile};
use crate::draft::{AlgorithmDraft, KeyDraft, LimitDraft, PolicyDraft, RateDraft, WaitDraft};
use crate::names::{self, NameRequest};
use crate::note::ImportNotes;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tidegate_config::ConfigErrors;
use tidegate_config::reading::{LIMITS_MAX, POLICIES_MAX};
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::scalar::name as parse_name;

/// The template of the key names in `FluxGate`.
const TEMPLATE: &str = "fluxgate:{policy}:{limit}:{key}:{band}";

/// The header that names the user in `FluxGate`.
const USER_HEADER: &str = "X-User-Id";

/// The label of a band without one.
const DEFAULT_LABEL: &str = "default";

/// A rule set: its id and its rules.
type RuleSet = (String, Vec<FluxgateRule>);

/// Returns all sections except the policies.
pub(super) fn base(found: &FluxgateFiles, notes: &mut ImportNotes) -> String {
    let mut base = SectionWriter::default();
    base.section("listen").field("http", "127.0.0.1:8080");
    if let Some(redis) = &found.settings.redis {
        base.section("store").text("url", &redis.url);
        if let Some(timeout) = redis.timeout {
            base.field("timeout", milliseconds(timeout));
        }
        if let Some(on_failure) = found.settings.on_failure {
            base.field("on_failure", on_failure);
        }
        base.map("redis");
        if let Some(mode) = redis.mode {
            base.field("topology", mode);
        }
        base.field("layout", "open").text("template", TEMPLATE);
        base.field("key_names", "literal");
        key_names(found, notes);
    }
    let limits = || {
        found
            .rules
            .iter()
            .filter_map(|rule| Some((rule, rule.limit.as_ref()?)))
    };
    let user = limits().find(|(_, limit)| limit.scope == Scope::User);
    // Rules that are read from `MongoDB` may also count by user.
    let user = user.map(|(rule, _)| &rule.place).or_else(|| live(found));
    if let Some(place) = user {
        let text = format!(
            "the user comes from `{USER_HEADER}`, as in FluxGate, but only if a trusted proxy \
             sends it (`client.trusted_proxies`), because other clients could forge it"
        );
        notes.add((&place.0, place.1), text);
        let source = format!("{{ header: {USER_HEADER} }}");
        base.section("client").field("user", source);
    }
    for (rule, limit) in limits() {
        if let Scope::Custom(name) = &limit.scope {
            let text = format!(
                "FluxGate sets the attribute `{name}` in code: add a source in \
                 `client.attributes`, or send it with each check request"
            );
            notes.add((&rule.place.0, rule.place.1), text);
        }
    }
    base.section("respond").field("profile", "fluxgate");
    if let Some(mongodb) = &found.settings.mongodb {
        sources(&mut base, found, mongodb, notes);
    }
    base.finish()
}

/// Returns the position of the `MongoDB` settings if the rules are read from there, because the files
/// contain none.
fn live(found: &FluxgateFiles) -> Option<&(String, usize)> {
    let mongodb = found.settings.mongodb.as_ref();
    let mongodb = mongodb.filter(|_| found.rules.is_empty());
    mongodb.map(|mongodb| &mongodb.place)
}

/// Notes that the names of keys contain API keys, if a rule may count by them.
fn key_names(found: &FluxgateFiles, notes: &mut ImportNotes) {
    let by_api_key = found.rules.iter().find(|rule| {
        let limit = rule.limit.as_ref();
        limit.is_some_and(|limit| limit.scope == Scope::ApiKey)
    });
    let place = by_api_key.map(|rule| &rule.place).or_else(|| live(found));
    if let Some(place) = place {
        let text = "Redis keys contain API keys in plain text, as in FluxGate, so that existing \
            counters continue. API keys with `%`, braces, spaces, non-ASCII characters or a \
            leading `~` or `#` are escaped and start from zero. Write `key_names: hashed` in \
            `store` to hash all of them and start from zero";
        notes.add((&place.0, place.1), text);
    }
}

/// Adds `MongoDB` as a source if the files contain no rules.
fn sources(
    base: &mut SectionWriter,
    found: &FluxgateFiles,
    mongodb: &MongoDb,
    notes: &mut ImportNotes,
) {
    let place = (mongodb.place.0.as_str(), mongodb.place.1);
    if !found.rules.is_empty() {
        let text = "rules are part of this configuration and MongoDB is not read; import only \
            the settings to read rules from MongoDB";
        return notes.add(place, text);
    }
    base.section("sources").item_of("mongodb");
    base.text("url", &mongodb.url)
        .text("database", &mongodb.database);
    if let Some(collection) = &mongodb.collection {
        base.text("collection", collection);
    }
    base.field("format", "fluxgate");
}

/// Returns the policies in the order in which their sets first appear, with the default set first.
pub(super) fn policies(
    found: FluxgateFiles,
    whole: &str,
    notes: &mut ImportNotes,
) -> Result<Vec<PolicyDraft>, ConfigErrors> {
    let mut sets = by_set(found.rules);
    if let Some((name, place)) = &found.settings.default_set {
        match sets.iter().position(|(id, _)| id == name) {
            Some(at) => {
                if let Some(first) = sets.get_mut(..=at) {
                    first.rotate_right(1);
                }
            }
            None => {
                let text = format!("the default rule set `{name}` has no rules");
                notes.add((&place.0, place.1), text);
            }
        }
    }
    check(&sets, whole)?;
    let ids: Vec<NameRequest> = sets.iter().map(|(id, _)| NameRequest::given(id)).collect();
    let named = names::all(&ids, &["none"]).into_iter().zip(sets);
    Ok(named
        .map(|(name, set)| policy(name, set, &found.settings, notes))
        .collect())
}

fn by_set(rules: Vec<FluxgateRule>) -> Vec<RuleSet> {
    let mut sets: Vec<RuleSet> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for rule in rules {
        let at = *places.entry(rule.set.clone()).or_insert(sets.len());
        match sets.get_mut(at) {
            Some((_, rules)) => rules.push(rule),
            None => sets.push((rule.set.clone(), vec![rule])),
        }
    }
    sets
}

/// Checks that there are not too many sets and rules, and that the rules of a set have different ids.
fn check(sets: &[RuleSet], whole: &str) -> Result<(), ConfigErrors> {
    let mut faults: Vec<((String, usize), ConfigFault)> = Vec::new();
    if let Some((_, rules)) = sets.get(POLICIES_MAX) {
        let count = sets.len();
        let message = format!("there are {count} rule sets; at most {POLICIES_MAX} are supported");
        let place = rules.first().map(|rule| rule.place.clone());
        faults.push((place.unwrap_or_default(), ConfigFault::new(message)));
    }
    for (set, rules) in sets {
        if let Some(rule) = rules.get(LIMITS_MAX) {
            let message = format!("rule set `{set}` has more than {LIMITS_MAX} rules");
            faults.push((rule.place.clone(), ConfigFault::new(message)));
        }
        let mut seen = BTreeMap::new();
        for rule in rules {
            let Some(limit) = &rule.limit else { continue };
            if let Some((file, line)) = seen.insert(&limit.id, &rule.place) {
                let fault = ConfigFault::new(format!(
                    "duplicate rule {} in rule set {}",
                    ConfigFault::quote(&limit.id),
                    ConfigFault::quote(set)
                ));
                let help =
                    format!("the first is in {file}, line {line}; they would share their buckets");
                faults.push((rule.place.clone(), fault.help(help)));
            }
        }
    }
    let mut wrong = ImportErrors::default();
    for ((file, line), fault) in faults {
        let nowhere = SourceFile {
            name: file,
            text: String::new(),
        };
        ImportedFile::add_error(&nowhere, line, fault, &mut wrong);
    }
    wrong.finish(whole)
}

fn policy(
    name: String,
    (id, rules): RuleSet,
    settings: &FluxgateSettings,
    notes: &mut ImportNotes,
) -> PolicyDraft {
    if name != id
        && let Some(rule) = rules.first()
    {
        let text = format!(
            "rule set {} is renamed to `{name}`, also in Redis",
            ConfigFault::quote(&id)
        );
        notes.add((&rule.place.0, rule.place.1), text);
    }
    let limits = rules.iter();
    let limits = limits.filter_map(|rule| Some((rule, rule.limit.as_ref()?)));
    let limits: Vec<(&FluxgateRule, &FluxgateLimit)> = limits.collect();
    let ids = limits
        .iter()
        .map(|(_, limit)| NameRequest::given(&limit.id));
    let names = names::all(&ids.collect::<Vec<_>>(), &["none"]);
    let limits = limits.into_iter().zip(names);
    let mut limits: Vec<LimitDraft> = limits
        .map(|(limit, name)| draft(limit, name, settings, notes))
        .collect();
    if limits.is_empty() {
        limits.push(LimitDraft::for_no_request());
    }
    PolicyDraft {
        domain: name.clone(),
        name,
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits,
    }
}

fn draft(
    (rule, limit): (&FluxgateRule, &FluxgateLimit),
    name: String,
    settings: &FluxgateSettings,
    notes: &mut ImportNotes,
) -> LimitDraft {
    let place = (rule.place.0.as_str(), rule.place.1);
    if name != limit.id {
        let id = ConfigFault::quote(&limit.id);
        notes.add(
            place,
            format!("rule {id} is renamed to `{name}`, also in Redis"),
        );
    }
    LimitDraft {
        key: match &limit.scope {
            Scope::Global => KeyDraft::Global,
            Scope::Ip => KeyDraft::part("ip"),
            Scope::User => KeyDraft::part("user"),
            Scope::ApiKey => KeyDraft::part("api-key"),
            Scope::Custom(name) => KeyDraft::part(format!("attr:{name}")),
        },
        rates: rates(&limit.bands, place, notes),
        enabled: limit.enabled,
        waiting: waiting(limit, settings, place, notes),
        ..LimitDraft::new(name, AlgorithmDraft::Tokens)
    }
}

fn waiting(
    limit: &FluxgateLimit,
    settings: &FluxgateSettings,
    place: (&str, usize),
    notes: &mut ImportNotes,
) -> Option<WaitDraft> {
    if !limit.waits {
        return None;
    }
    match settings.waiting {
        WaitSetting::Unknown => {
            let text = "`WAIT_FOR_REFILL` waits up to 5 s, with at most 100 requests, the \
                defaults of `fluxgate.ratelimit.wait-for-refill`; import the settings together \
                with the rules if they differ";
            notes.add(place, text);
            Some(FluxgateSettings::USUAL_WAITING)
        }
        WaitSetting::Never => {
            let text = "`WAIT_FOR_REFILL` refuses, because `fluxgate.ratelimit.wait-for-refill` \
                is not enabled";
            notes.add(place, text);
            None
        }
        WaitSetting::So(waiting) => Some(waiting),
    }
}

/// Returns bands with labels, because in `FluxGate` each band has its own key.
fn rates(bands: &[FluxgateBand], place: (&str, usize), notes: &mut ImportNotes) -> Vec<RateDraft> {
    let unlabelled = bands.iter().filter(|band| band.label.is_none()).count();
    if unlabelled > 1 {
        let text = "several bands of a rule have no label and share one bucket in FluxGate; here \
            each has its own";
        notes.warn(place, text);
    }
    let labelled = bands.iter().zip(labels(bands));
    let labelled = labelled.map(|(band, label)| {
        let written = band.label.as_deref().filter(|written| *written != label);
        if let Some(written) = written {
            let why = match parse_name(written) {
                Ok(_) => "two bands cannot share a bucket",
                Err(_) => "Tidegate allows fewer characters",
            };
            let written = ConfigFault::quote(written);
            notes.add(
                place,
                format!("band {written} is renamed to `{label}`: {why}"),
            );
        }
        RateDraft {
            text: band.rate(),
            label: Some(label),
        }
    });
    labelled.collect()
}

/// Returns the labels of bands, in order.
///
/// A label identifies a bucket. So no label depends on the position of a band, and none contains a
/// number that may change. Of several bands without a label, the longest gets the same label as in
/// `FluxGate`. Adding a shorter band to a single one then keeps the count of that one. Adding a longer
/// band gives the shorter one a new label: its count is lost, but it soon fills up again. The same
/// holds for bands that share a label. Of several equally long bands, the one with the smallest
/// capacity is first.
fn labels(bands: &[FluxgateBand]) -> Vec<String> {
    let mut sorted: Vec<(usize, &FluxgateBand)> = bands.iter().enumerate().collect();
    sorted.sort_by_key(|(_, band)| (Reverse(band.seconds), band.capacity));
    let mut counts = BTreeMap::new();
    let mut count = |text: String| {
        let count: &mut usize = counts.entry(text).or_default();
        *count = count.saturating_add(1);
        *count
    };
    let wanted = sorted.iter().map(|(_, band)| {
        let written = band.label.as_deref();
        let label = written.unwrap_or(DEFAULT_LABEL);
        let is_first = count(format!("{written:?}")) == 1;
        if is_first {
            return match written {
                Some(label) => NameRequest::given(label),
                None => NameRequest::made_up(label.to_owned(), label.to_owned()),
            };
        }
        let mut text = format!("per-{}s", band.seconds);
        if let Some(label) = written {
            text = format!("{label}-{text}");
        }
        match count(text.clone()) {
            1 => {}
            nth => text = format!("{text}-{nth}"),
        }
        NameRequest::made_up(text.clone(), text)
    });
    let named = names::all(&wanted.collect::<Vec<_>>(), &[]);
    let places = sorted.iter().map(|(at, _)| *at);
    let named: BTreeMap<usize, String> = places.zip(named).collect();
    named.into_values().collect()
}
