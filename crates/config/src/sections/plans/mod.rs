//! `plans`: the sources of rates that are not written in the configuration.
//!
//! | module | contents |
//! |---|---|
//! | this one | the list of sources |
//! | `inline` | plans in the configuration itself |

mod inline;

pub(crate) use inline::check as check_inline;

use super::sources::shelf;
use crate::language::names::{DistinctNames, refuse_too_many};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::PLAN_FORMAT;
use crate::syntax::NodeKind;
use crate::tables::plans::{ETCD, HTTP, MONGODB, PLANS, REDIS};
use crate::tables::sources::DOCUMENTS;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_policy::limit::{KeyPart, Limit};
use tidegate_policy::plan::{
    PlanFormat, PlanTerms, RATE_NAMES_MAX, RateName, UnknownSubject, UnsetShare,
};
use tidegate_policy::plan_source::{Collections, PlanOrigin, PlanSource};
use tidegate_policy::policy::Policy;
use tidegate_policy::route::Routes;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::text::duration;
use tidegate_policy::tls::ClientTls;

/// The maximum number of plan sources.
const SOURCES_MAX: usize = 64;

/// The range of intervals between two reads of a source.
const REFRESHES: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);

/// The range of timeouts of a read.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

/// Reads `plans`. `store` is the Redis of sources that set no URL.
pub(crate) fn read_all(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
) -> Vec<PlanSource> {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), SOURCES_MAX);
    let mut names = DistinctNames::new("plan sources");
    let items = items.iter().take(SOURCES_MAX);
    items
        .filter_map(|item| source(reader, item, store, &mut names))
        .collect()
}

fn source(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
    names: &mut DistinctNames,
) -> Option<PlanSource> {
    let fields = reader.fields(value, &PLANS)?;
    let name = fields
        .get("name")
        .and_then(|value| names.read(reader, &value));
    let refresh = reader.setting(&fields, "refresh", |text| within(text, &REFRESHES));
    let timeout = reader.setting(&fields, "timeout", |text| within(text, &TIMEOUTS));
    let terms = terms(reader, &fields);
    let format = format(reader, &fields);
    let from = origin(reader, &fields, store, &terms);
    let usual = match from {
        Some(PlanOrigin::Shelf(_)) => PlanSource::REFRESH_SHELF,
        _ => PlanSource::REFRESH,
    };
    Some(PlanSource {
        name: name?,
        // An error in the origin is already reported. The source stays in the list so that references
        // to its name resolve.
        origin: from.unwrap_or(PlanOrigin::Program),
        refresh: refresh.unwrap_or(usual),
        timeout: timeout.unwrap_or(PlanSource::TIMEOUT),
        terms,
        format,
    })
}

/// Reads the names of rates, and the share of subjects without one.
fn terms(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> PlanTerms {
    let mut rates: Vec<RateName> = Vec::new();
    if let Some(value) = fields.get("rates") {
        let items = reader.list(&value);
        refuse_too_many(reader, &value, items.len(), RATE_NAMES_MAX);
        for item in items.iter().take(RATE_NAMES_MAX) {
            let Some(name) = reader.parse(item, RateName::parse) else {
                continue;
            };
            if name.is_requests() || rates.contains(&name) {
                let fault = ConfigFault::new(format!("`{name}` is one of the rates already"));
                reader.error(item.spot(), fault.help("remove it"));
            }
            rates.push(name);
        }
    }
    let unset = reader.setting(fields, "unset", UnsetShare::parse);
    if let (false, Some(UnsetShare::Rate(_)), Some(value)) =
        (rates.is_empty(), unset, fields.get("unset"))
    {
        let fault = ConfigFault::new("`unset` cannot be the same rate for all of `rates`");
        let help = "write `unset: unlimited` or `unset: refuse`";
        reader.error(value.spot(), fault.help(help));
    }
    PlanTerms {
        unset: unset.unwrap_or_default(),
        rates: rates.into(),
    }
}

fn format(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> PlanFormat {
    let format = reader.setting(fields, "format", |word| PLAN_FORMAT.parse(word));
    let has_format = ["file", "http"].iter().any(|it| fields.get(it).is_some());
    if let Some(value) = fields.get("format").filter(|_| !has_format) {
        let fault = ConfigFault::new("`format` has no effect: only a file or a URL has a format");
        reader.error(value.key_spot(), fault.help("remove it"));
    }
    format.unwrap_or_default()
}

fn origin(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    store: &StoreSettings,
    terms: &PlanTerms,
) -> Option<PlanOrigin> {
    if let Some(value) = fields.get("inline") {
        return inline::read(reader, &value, terms).map(PlanOrigin::Inline);
    }
    if let Some(value) = fields.get("file") {
        let path = reader.parse(&value, |text| {
            not_empty(text, "a path, for example `plans.yaml`")
        });
        return path.map(PlanOrigin::File);
    }
    if let Some(value) = fields.get("http") {
        return http(reader, &value);
    }
    if let Some(value) = fields.get("redis") {
        let fields = reader.fields(&value, &REDIS)?;
        let shelf = shelf::redis(reader, &fields, store, "tidegate:plans");
        return shelf.map(PlanOrigin::Shelf);
    }
    if let Some(value) = fields.get("etcd") {
        let fields = reader.fields(&value, &ETCD)?;
        let shelf = shelf::etcd(reader, &fields, "/tidegate-plans/");
        return shelf.map(PlanOrigin::Shelf);
    }
    fields
        .get("mongodb")
        .and_then(|value| mongodb(reader, &value))
}

fn http(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<PlanOrigin> {
    if let NodeKind::Text(_) = value.node.kind {
        let url = reader.parse(value, http_url)?;
        return Some(PlanOrigin::Http {
            url,
            token: None,
            tls: ClientTls::default(),
        });
    }
    let fields = reader.fields(value, &HTTP)?;
    let url = reader.setting(&fields, "url", http_url);
    let token = secret(reader, &fields, "token", "token_file");
    let tls = shelf::tls(reader, &fields, url.as_slice());
    Some(PlanOrigin::Http {
        url: url?,
        token,
        tls,
    })
}

/// Reads a URL that plans are fetched from.
pub fn http_url(text: &str) -> Result<String, ConfigFault> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|it| text.strip_prefix(it));
    let host = rest.map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let help = "for example `https://plans.internal/v1/plans`";
    match host {
        Some(host) if host.contains('@') => {
            let fault = ConfigFault::new("the URL contains a password, which would appear in logs");
            Err(fault.help("use `token` or `token_file`"))
        }
        Some(host) if !host.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) => {
            Ok(text.to_owned())
        }
        _ => {
            let fault =
                ConfigFault::new(format!("{} is not an HTTP URL", ConfigFault::quote(text)));
            Err(fault.help(help))
        }
    }
}

/// Settings for foreign collections. They do not apply to Tidegate's own documents.
const OF_COLLECTIONS: [&str; 10] = [
    "plans",
    "groups",
    "subjects",
    "settings",
    "amount",
    "period",
    "quota",
    "plan_of_group",
    "group_of_subject",
    "subject_id",
];

fn mongodb(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<PlanOrigin> {
    let fields = reader.fields(value, &MONGODB)?;
    if fields.get(DOCUMENTS).is_some() {
        shelf::nothing_else(reader, &fields, OF_COLLECTIONS);
        let shelf = shelf::mongodb(reader, &fields, DOCUMENTS, "tidegate_plans");
        return shelf.map(PlanOrigin::Shelf);
    }
    shelf::nothing_written(reader, &fields);
    let (url, database) = shelf::mongodb_database(reader, &fields);
    let collections = collections(reader, &fields);
    Some(PlanOrigin::MongoDb {
        url: url?,
        database: database?,
        collections: Box::new(collections),
    })
}

fn collections(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Collections {
    let usual = Collections::default();
    let mut name = |field: &str, usual: String| {
        let written = reader.setting(fields, field, |text| not_empty(text, "a name"));
        written.unwrap_or(usual)
    };
    Collections {
        plans: name("plans", usual.plans),
        groups: name("groups", usual.groups),
        subjects: name("subjects", usual.subjects),
        settings: name("settings", usual.settings),
        amount: name("amount", usual.amount),
        period: name("period", usual.period),
        plan_of_group: name("plan_of_group", usual.plan_of_group),
        group_of_subject: name("group_of_subject", usual.group_of_subject),
        subject_id: name("subject_id", usual.subject_id),
        quota: Some(name("quota", String::new())).filter(|name| !name.is_empty()),
    }
}

pub(crate) fn mongodb_url(url: &Secret) -> Result<(), ConfigFault> {
    let schemes = ["mongodb://", "mongodb+srv://"];
    if schemes
        .iter()
        .any(|scheme| url.expose().starts_with(scheme))
    {
        return Ok(());
    }
    let fault = ConfigFault::new("this is not a MongoDB URL");
    Err(fault.help("for example `mongodb://127.0.0.1:27017`"))
}

pub(crate) fn not_empty(text: &str, expected: &str) -> Result<String, ConfigFault> {
    match text {
        "" => Err(ConfigFault::new(format!(
            "this is empty; expected {expected}"
        ))),
        text => Ok(text.to_owned()),
    }
}

pub(crate) fn within(
    text: &str,
    range: &RangeInclusive<Duration>,
) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if range.contains(&length) {
        return Ok(length);
    }
    let (from, to) = (range.start(), range.end());
    let fault = ConfigFault::new(format!(
        "{} is too short or too long",
        ConfigFault::quote(text)
    ));
    Err(fault.help(format!("expected {from:?} to {}s", to.as_secs())))
}

/// Warns about sources that no limit uses.
pub(crate) fn warn_about_unused(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    sources: &[PlanSource],
    policies: &[Policy],
) {
    if reader.has_errors() {
        return;
    }
    let limits = policies.iter().flat_map(|policy| &policy.limits);
    let asked: Vec<usize> = limits
        .filter_map(|it| Some(it.plan.as_ref()?.source))
        .collect();
    let items = reader.list(value);
    for ((number, source), item) in sources.iter().enumerate().zip(&items) {
        if !asked.contains(&number) {
            let message = format!(
                "no limit uses the plan source {}",
                ConfigFault::quote(&source.name)
            );
            let help = format!(
                "write `rate: {{ plan: {}, … }}` in a limit, or remove it",
                source.name
            );
            reader.warn(item.spot(), ConfigFault::new(message).help(help));
        }
    }
}

/// Warns about routes that are missing from an inline plan by route, if the limit has no rate for
/// those.
pub(crate) fn warn_about_routes(
    reader: &mut ConfigReader<'_>,
    (value, routes): (&ConfigValue<'_>, &Routes),
    sources: &[PlanSource],
    policies: &[Policy],
) {
    if reader.has_errors() {
        return;
    }
    let items = reader.list(value);
    for (route, item) in routes.iter().zip(&items) {
        let policy = route.policy.as_ref().and_then(|it| policies.get(it.index));
        let limits = policy.map_or(&[][..], |policy| &policy.limits);
        // Skip limits with conditions: these may exclude the route.
        let asked = limits.iter().filter(|limit| limit.conditions.is_empty());
        for (limit, source, then) in asked.filter_map(|it| without_rate(it, &route.name, sources)) {
            let message = format!(
                "the plans `{source}` have no route {}: limit `{limit}` {then}",
                ConfigFault::quote(&route.name)
            );
            let help = format!("add the route to `subjects` of the plans `{source}`");
            reader.warn(item.spot(), ConfigFault::new(message).help(help));
        }
    }
}

/// Returns the names of a limit and of its inline plan if the plan lacks `route`, and the effect on
/// that route.
fn without_rate<'a>(
    limit: &'a Limit,
    route: &str,
    sources: &'a [PlanSource],
) -> Option<(&'a str, &'a str, &'static str)> {
    let plan = limit.plan.as_ref().filter(|_| limit.enabled)?;
    let source = sources.get(plan.source)?;
    let is_known = source.inline()?.get(route).is_some();
    if plan.subject != KeyPart::Route || is_known {
        return None;
    }
    let then = match plan.unknown {
        UnknownSubject::Refuse => "refuses all its requests",
        UnknownSubject::Skip => "does not apply to it",
        UnknownSubject::Unlimited => "does not limit it",
        UnknownSubject::Band => return None,
    };
    Some((&limit.name, &source.name, then))
}
