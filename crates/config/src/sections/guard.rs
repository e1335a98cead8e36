//! `guards`: lists that are evaluated before any limit.

use super::key;
use super::mode;
use super::respond;
use super::store;
use crate::language::names::{DistinctNames, refuse_too_many};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::Shape::{Map, Text, Word};
use crate::language::table::{FieldReader, FieldTable};
use crate::language::table::{TEXTS, optional, required};
use crate::language::words::{MODE, REASON};
use crate::tables::respond::REFUSAL;
use std::time::Duration;
use tidegate_policy::guard::{
    AddressMember, AnswerReason, Guard, GuardEffect, ListOrigin, MEMBER_BYTES_MAX,
};
use tidegate_policy::limit::{AddressRules, KeyPart};
use tidegate_policy::respond::Layer;
use tidegate_policy::store::StoreTarget;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The fields of a guard.
pub(crate) static GUARD: FieldTable = FieldTable {
    what: "guard",
    fields: &[
        required("name", Text("banned"), "Guard name, unique among guards."),
        optional(
            "deny",
            Text("ip"),
            "Value to look up: one part of a key, such as `ip`, `user`, `api-key`, `header:NAME`, \
             `attr:NAME`, `descriptor:NAME`, `host`. Requests with a listed value are refused; no \
             limit is evaluated or charged. Set `deny` or `allow`.",
        ),
        optional(
            "allow",
            Text("ip"),
            "Value to look up, as in `deny`. Requests with a listed value pass; no other guard and no \
             limit is evaluated.",
        ),
        optional("list", TEXTS, "Listed values: one or several."),
        optional(
            "file",
            Text("/etc/tidegate/banned.txt"),
            "File with one listed value per line; `#` at the start of a line or after a blank starts \
             a comment. It must exist at start.",
        ),
        optional(
            "redis",
            Map(&REDIS),
            "Redis set with the listed values, read with `SSCAN`.",
        ),
        optional(
            "refresh",
            Text("15s"),
            "Time between two reads of `file` or `redis`, 100ms to 1d. Default: 5s.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "Timeout of one read, 1ms to 5min. Default: 5s.",
        ),
        optional(
            "reason",
            Word(&REASON),
            "Reason of its refusals. Default: `blacklisted` for `ip`, else `blocked`.",
        ),
        optional(
            "mode",
            Word(&MODE),
            "`shadow`: requests with a listed value are only counted. `off`: the guard is skipped. \
             Default: `enforce`.",
        ),
        optional(
            "respond",
            Map(&REFUSAL),
            "Responses to requests that this guard refuses. Default: as in `respond`.",
        ),
    ],
    exactly_one: &["list", "file", "redis"],
};

/// The fields of a set in Redis.
static REDIS: FieldTable = FieldTable {
    what: "`redis`",
    fields: &[
        required("set", Text("tidegate:banned"), "Key of the set."),
        optional(
            "url",
            Text("redis://127.0.0.1:6379"),
            "URL of Redis. Default: the store's.",
        ),
    ],
    exactly_one: &[],
};

/// Settings that all guards share.
pub(crate) struct GuardScope<'a> {
    /// The configuration of responses.
    pub(crate) respond: &'a Layer,
    /// The store of the buckets.
    pub(crate) store: &'a StoreTarget,
    /// The rules that turn an address into a key.
    pub(crate) addresses: AddressRules,
}

/// Reads `guards`.
pub(crate) fn read_all(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    around: &GuardScope<'_>,
) -> Vec<Guard> {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), Guard::MOST);
    let mut names = DistinctNames::new("guards");
    let guards = items.iter().take(Guard::MOST);
    guards
        .filter_map(|item| guard(reader, item, &mut names, around))
        .collect()
}

fn guard(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    names: &mut DistinctNames,
    around: &GuardScope<'_>,
) -> Option<Guard> {
    let fields = reader.fields(value, &GUARD)?;
    let name = fields
        .get("name")
        .and_then(|value| names.read(reader, &value));
    let subject = subject(reader, value, &fields);
    let origin = origin(reader, &fields, subject.as_ref().map(|it| &it.1), around);
    let refresh = reader.setting(&fields, "refresh", refresh);
    let timeout = reader.setting(&fields, "timeout", timeout);
    let mode = mode::read(reader, &fields);
    let written = reader.setting(&fields, "reason", |word| REASON.parse(word));
    let reason = written.unwrap_or(match &subject {
        Some((_, KeyPart::Ip)) => AnswerReason::Blacklisted,
        _ => AnswerReason::Blocked,
    });
    let below = around.respond.refusal_for(reason);
    let refusal = fields
        .get("respond")
        .and_then(|value| respond::read_refusal(reader, &value, &below));
    let (effect, subject) = subject?;
    if effect == GuardEffect::Exempt {
        refuse_unspoken(reader, &fields);
    }
    Some(Guard {
        name: name?,
        enabled: mode.enabled,
        subject,
        effect,
        reason: match effect {
            GuardEffect::Exempt => AnswerReason::Exempt,
            GuardEffect::Refuse => reason,
        },
        origin: origin?,
        refresh: refresh.unwrap_or(Guard::REFRESH),
        timeout: timeout.unwrap_or(Guard::TIMEOUT),
        mode: mode.mode,
        refusal,
    })
}

/// Reads the identity that is looked up, and the effect of a match.
fn subject(
    reader: &mut ConfigReader<'_>,
    guard: &ConfigValue<'_>,
    fields: &FieldReader<'_>,
) -> Option<(GuardEffect, KeyPart)> {
    let (effect, value) = match (fields.get("deny"), fields.get("allow")) {
        (Some(value), None) => (GuardEffect::Refuse, value),
        (None, Some(value)) => (GuardEffect::Exempt, value),
        (Some(_), Some(value)) => {
            let fault = ConfigFault::new("a guard has both `deny` and `allow`");
            reader.error(value.key_spot(), fault.help("write one of the two"));
            return None;
        }
        (None, None) => {
            let fault = ConfigFault::new("a guard needs `deny` or `allow`");
            let help = "add one with the key to look up, for example `deny: ip`";
            reader.error(guard.spot(), fault.help(help));
            return None;
        }
    };
    let part = reader.parse(&value, key::part)?;
    if matches!(part, KeyPart::Global | KeyPart::Group | KeyPart::Descriptor) {
        let fault = ConfigFault::new("a guard needs a single key");
        let help = "for example `ip`, `user`, `api-key`, `attr:project` or `descriptor:NAME`";
        reader.error(value.spot(), fault.help(help));
        return None;
    }
    Some((effect, part))
}

/// Reads the origin of the list.
fn origin(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    subject: Option<&KeyPart>,
    around: &GuardScope<'_>,
) -> Option<ListOrigin> {
    if let Some(value) = fields.get("list") {
        refuse_unread(reader, fields);
        let members = members(reader, &value, subject, around.addresses);
        return Some(ListOrigin::List(members.into()));
    }
    if let Some(value) = fields.get("file") {
        let path = reader.text(&value)?;
        // A config source may name no file at all. Otherwise its author could learn which files exist.
        let there = reader.environment_at(value.node.place).has_file(&path);
        let there = there.map_err(|why| {
            ConfigFault::new(format!(
                "{} cannot be read: {why}",
                ConfigFault::quote(&path)
            ))
        });
        reader.accept(&value, there)?;
        return Some(ListOrigin::File(path));
    }
    redis(reader, &fields.get("redis")?, around.store)
}

/// Reads the members of a list in the configuration. Unlike members from elsewhere, each must be valid.
fn members(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    subject: Option<&KeyPart>,
    rules: AddressRules,
) -> Vec<String> {
    let mut members = Vec::new();
    for item in reader.one_or_many(value) {
        let member = reader.parse(&item, |text| member(text, subject, rules));
        members.extend(member);
    }
    members
}

fn member(
    text: &str,
    subject: Option<&KeyPart>,
    rules: AddressRules,
) -> Result<String, ConfigFault> {
    if subject == Some(&KeyPart::Ip) && AddressMember::parse(text, rules).is_none() {
        let message = format!(
            "{} is neither an address nor a network",
            ConfigFault::quote(text)
        );
        return Err(ConfigFault::new(message)
            .help("for example `192.0.2.7`, `10.0.0.0/8` or `2001:db8::/32`"));
    }
    // The message does not quote the value: it may be a secret.
    if text.is_empty() || text.len() > MEMBER_BYTES_MAX {
        let message = format!(
            "a listed value has 1 to {MEMBER_BYTES_MAX} bytes, this one {}",
            text.len()
        );
        return Err(ConfigFault::new(message));
    }
    Ok(text.to_owned())
}

fn redis(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreTarget,
) -> Option<ListOrigin> {
    let fields = reader.fields(value, &REDIS)?;
    let set = reader.setting(&fields, "set", set);
    let at = match fields.get("url") {
        Some(url) => Some(reader.parse(&url, target)?),
        None => None,
    };
    if at.is_none() && store.redis().is_none() {
        let fault = ConfigFault::new("`redis` needs a `url`, because the store is `memory`");
        let help = "write `redis: { set: …, url: redis://HOST }`";
        reader.error(value.spot(), fault.help(help));
        return None;
    }
    Some(ListOrigin::Redis { set: set?, at })
}

fn set(text: &str) -> Result<String, ConfigFault> {
    if (1..=MEMBER_BYTES_MAX).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(ConfigFault::new("this cannot be the key of a set").help("for example `tidegate:banned`"))
}

fn target(url: &str) -> Result<Box<tidegate_policy::store::RedisSettings>, ConfigFault> {
    let expected = "expected a URL, for example `redis://127.0.0.1:6379`";
    let settings = store::from_url(url).map_err(|errors| {
        let message = errors.problems().first().map(|it| it.message().to_owned());
        ConfigFault::new(message.unwrap_or_else(|| "this is not a URL".to_owned())).help(expected)
    })?;
    match settings.target {
        StoreTarget::Redis(redis) => Ok(redis),
        StoreTarget::Memory => Err(ConfigFault::new("`memory` has no sets").help(expected)),
    }
}

/// Reports `refresh` and `timeout` for a list in the configuration, which is never read again.
fn refuse_unread(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in ["refresh", "timeout"] {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!(
                "`{name}` has no effect: `list` is read with the configuration"
            ))
            .help(format!("remove `{name}`, or use `file` or `redis`"));
            reader.error(value.key_spot(), fault);
        }
    }
}

/// Reports `reason` and `respond` for an exempting guard, which refuses nothing.
fn refuse_unspoken(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in ["reason", "respond"] {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!(
                "`{name}` has no effect: `allow` refuses no request"
            ));
            reader.error(
                value.key_spot(),
                fault.help(format!("remove `{name}`, or use `deny`")),
            );
        }
    }
}

fn refresh(text: &str) -> Result<Duration, ConfigFault> {
    within(text, 100_000..=86_400_000_000, "100ms to 1d", "`5s`")
}

fn timeout(text: &str) -> Result<Duration, ConfigFault> {
    within(text, 1_000..=300_000_000, "1ms to 5min", "`5s`")
}

fn within(
    text: &str,
    range: std::ops::RangeInclusive<u64>,
    words: &str,
    example: &str,
) -> Result<Duration, ConfigFault> {
    let micros = duration::parse(text)?;
    if range.contains(&micros) {
        return Ok(Duration::from_micros(micros));
    }
    let message = format!("{} is not from {words}", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help(format!("for example {example}")))
}
