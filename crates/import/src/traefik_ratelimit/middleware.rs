//! A `RateLimit` middleware.

use super::settings::{TraefikField, TraefikItem};
use crate::document::ImportedFile;
use crate::map::AMOUNT_MAX;
use std::time::Duration;
use tidegate_policy::text::{ConfigFault, TextSpan, closest, duration};

/// The fields of a `RateLimit` middleware, in lower case.
const FIELDS: [&str; 26] = [
    "average",
    "period",
    "burst",
    "sourcecriterion",
    "sourcecriterion.ipstrategy",
    "sourcecriterion.ipstrategy.depth",
    "sourcecriterion.ipstrategy.excludedips",
    "sourcecriterion.ipstrategy.ipv6subnet",
    "sourcecriterion.requestheadername",
    "sourcecriterion.requesthost",
    "redis",
    "redis.endpoints",
    "redis.username",
    "redis.password",
    "redis.secret",
    "redis.db",
    "redis.poolsize",
    "redis.minidleconns",
    "redis.maxactiveconns",
    "redis.readtimeout",
    "redis.writetimeout",
    "redis.dialtimeout",
    "redis.denyonerror",
    "redis.tls",
    "redis.tls.ca",
    "redis.tls.cert",
];

/// The source of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TraefikSource {
    Address,
    Header(String),
    Host,
}

/// The Redis in which a middleware has its buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraefikRedis {
    pub(super) endpoints: Vec<String>,
    pub(super) user: Option<String>,
    pub(super) has_password: bool,
    pub(super) database: u64,
    pub(super) has_tls: bool,
    pub(super) allows_on_error: bool,
}

/// A `RateLimit` middleware.
#[derive(Clone, Debug)]
pub(super) struct TraefikRateLimit {
    pub(super) name: String,
    pub(super) place: TextSpan,
    /// The amount per period; `None` if it does not limit.
    pub(super) rate: Option<(u64, Duration)>,
    pub(super) burst: u64,
    pub(super) source: TraefikSource,
    pub(super) excluded: Vec<String>,
    pub(super) depth: Option<(u64, TextSpan)>,
    pub(super) ipv6_subnet: Option<u64>,
    pub(super) redis: Option<TraefikRedis>,
}

/// The reader of a middleware.
struct MiddlewareReader<'r, 'a, 'i> {
    document: &'r mut ImportedFile<'a>,
    item: &'i TraefikItem,
}

/// Reads a middleware; `None` if it is of another kind.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    item: &TraefikItem,
) -> Option<TraefikRateLimit> {
    if let Some(it) = item
        .fields
        .iter()
        .find(|it| it.name.starts_with("inflightreq"))
    {
        let text = format!(
            "middleware {} is not translated: Tidegate cannot limit concurrent requests (InFlightReq) yet",
            ConfigFault::quote(&item.name)
        );
        document.warn(it.place, text);
    }
    let is_ours = |it: &&TraefikField| it.name == "ratelimit" || it.name.starts_with("ratelimit.");
    item.fields.iter().find(is_ours)?;
    let mut reader = MiddlewareReader { document, item };
    reader.check();
    Some(reader.limit())
}

impl MiddlewareReader<'_, '_, '_> {
    /// Reports unknown fields.
    fn check(&mut self) {
        for field in &self.item.fields {
            let Some(name) = field.name.strip_prefix("ratelimit.") else {
                continue;
            };
            if !FIELDS.contains(&name) && !name.starts_with("redis.tls.") {
                let message = format!("unknown field {} of RateLimit", ConfigFault::quote(name));
                let meant = closest(name, FIELDS).map(|it| format!("did you mean `{it}`?"));
                let fault = ConfigFault::new(message).maybe_help(meant);
                self.document.error((field.place, String::new()), fault);
            }
        }
    }

    fn limit(&mut self) -> TraefikRateLimit {
        let average = self.number("average", AMOUNT_MAX).unwrap_or(0);
        let period = self.period();
        let ip = "sourcecriterion.ipstrategy";
        let depth = self.number(&format!("{ip}.depth"), 64).filter(|it| *it > 0);
        let place = self.place(&format!("{ip}.depth"));
        TraefikRateLimit {
            name: self.item.name.clone(),
            place: self.item.place,
            rate: (average > 0).then_some((average, period)),
            burst: self.number("burst", AMOUNT_MAX).unwrap_or(1).max(1),
            source: self.source(),
            excluded: self.values(&format!("{ip}.excludedips")),
            depth: depth.map(|depth| (depth, place)),
            ipv6_subnet: self.number(&format!("{ip}.ipv6subnet"), 128),
            redis: self.redis(),
        }
    }

    fn field(&self, name: &str) -> Option<&TraefikField> {
        self.item.get(&format!("ratelimit.{name}"))
    }

    fn place(&self, name: &str) -> TextSpan {
        self.field(name).map_or(self.item.place, |it| it.place)
    }

    fn values(&self, name: &str) -> Vec<String> {
        self.field(name).map_or(Vec::new(), |it| it.values.clone())
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = self.field(name)?.values.first()?;
        (!text.is_empty()).then(|| text.clone())
    }

    fn fail(&mut self, name: &str, found: &str, expected: &str) {
        let place = self.place(name);
        let found = ConfigFault::quote(found);
        let fault = ConfigFault::new(format!("`{name}` is {found}; expected {expected}"));
        self.document.error((place, String::new()), fault);
    }

    fn number(&mut self, name: &str, most: u64) -> Option<u64> {
        let text = self.text(name)?;
        let number = text.parse::<u64>().ok().filter(|it| *it <= most);
        if number.is_none() {
            self.fail(name, &text, "a whole number");
        }
        number
    }

    fn flag(&mut self, name: &str, default: bool) -> bool {
        match self.text(name).as_deref() {
            Some("true") => true,
            Some("false") => false,
            Some(other) => {
                let other = other.to_owned();
                self.fail(name, &other, "true or false");
                default
            }
            None => default,
        }
    }

    /// Returns the period: a duration, or a number of seconds.
    fn period(&mut self) -> Duration {
        let second = Duration::from_secs(1);
        let Some(text) = self.text("period") else {
            return second;
        };
        if text == "0" || text == "0s" {
            return second;
        }
        let seconds = text.parse().ok().map(Duration::from_secs);
        let period = seconds.or_else(|| duration(&text).ok());
        let day = Duration::from_hours(24 * 365);
        let period = period.filter(|it| *it >= Duration::from_millis(1) && *it <= day);
        if period.is_none() {
            self.fail("period", &text, "a duration such as `1s` or `1m`");
        }
        period.unwrap_or(second)
    }

    fn source(&mut self) -> TraefikSource {
        let header = self.text("sourcecriterion.requestheadername");
        let by_host = self.flag("sourcecriterion.requesthost", false);
        let by_ip = self
            .item
            .fields
            .iter()
            .any(|it| it.name.starts_with("ratelimit.sourcecriterion.ipstrategy"));
        if [header.is_some(), by_host, by_ip]
            .iter()
            .filter(|is| **is)
            .count()
            > 1
        {
            let message = "`sourceCriterion` has several strategies";
            let fault = ConfigFault::new(message)
                .help("keep one of `ipStrategy`, `requestHeaderName` and `requestHost`");
            let place = self.item.place;
            self.document.error((place, String::new()), fault);
        }
        match header {
            Some(header) => TraefikSource::Header(header.to_ascii_lowercase()),
            None if by_host => TraefikSource::Host,
            None => TraefikSource::Address,
        }
    }

    fn redis(&mut self) -> Option<TraefikRedis> {
        let is_redis = |it: &&TraefikField| it.name.starts_with("ratelimit.redis");
        self.item.fields.iter().find(is_redis)?;
        let mut endpoints = self.values("redis.endpoints");
        endpoints.retain(|it| !it.is_empty());
        if endpoints.is_empty() {
            endpoints.push("localhost:6379".to_owned());
        }
        let has = |name: &str| self.item.fields.iter().any(|it| it.name.starts_with(name));
        let has_tls = has("ratelimit.redis.tls");
        let has_password = has("ratelimit.redis.password") || has("ratelimit.redis.secret");
        Some(TraefikRedis {
            endpoints,
            user: self.text("redis.username"),
            has_password,
            database: self.number("redis.db", 1_000_000).unwrap_or(0),
            has_tls,
            allows_on_error: !self.flag("redis.denyonerror", true),
        })
    }
}
