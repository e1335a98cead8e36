//! `addresses`: counts requests by client address and bans addresses that send too many.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::Shape::{Flag, Map, Text, Whole};
use crate::language::table::{FieldReader, FieldTable};
use crate::language::table::{optional, required};
use crate::language::words::FLAG;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_policy::addresses::{AddressLimits, BanRule};
use tidegate_policy::guard::{Guard, GuardEffect, Guards, ListOrigin};
use tidegate_policy::limit::KeyPart;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;
use tidegate_policy::text::duration;

/// The longest name of a key in Redis, in bytes.
const NAME_MAX: usize = 512;

/// The highest threshold. No client sends this many requests in a day.
const THRESHOLD_MAX: u64 = 1_000_000_000_000;

/// The range of a period. A shorter period would end before all counts have arrived.
const PERIODS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// The fields of `addresses`.
pub(crate) static ADDRESSES: FieldTable = FieldTable {
    what: "`addresses`",
    fields: &[
        optional(
            "period",
            Text("15s"),
            "Counting period, 1s to 24h. Counts start at zero in each period. Default: 15s.",
        ),
        optional(
            "threshold",
            Whole(1, THRESHOLD_MAX),
            "Number of requests in one period at which an address is banned. Default: 10000.",
        ),
        optional(
            "ban",
            Map(&BAN),
            "Ban for addresses that reach the threshold. Default: no bans.",
        ),
        optional("maps", Map(&MAPS), "Redis keys of the counts."),
        optional(
            "max_addresses",
            Whole(1, 100_000_000),
            "Addresses that each map counts separately; all others share one count. Default: 1000000.",
        ),
        optional(
            "total_lasts",
            Text("30d"),
            "Lifetime of the counts of all periods, 1min or more; or `never`. Default: `never`.",
        ),
        optional(
            "count_banned",
            Flag,
            "Count requests from banned clients. Default: false.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `addresses.ban`.
static BAN: FieldTable = FieldTable {
    what: "`ban`",
    fields: &[
        required(
            "guard",
            Text("banned"),
            "Guard that bans. It must have `deny: ip` and a set in the store's Redis. While it is \
             off, no address is banned.",
        ),
        required(
            "for",
            Text("1h"),
            "Ban duration, 1s or more; `0` is permanent.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `addresses.maps`.
static MAPS: FieldTable = FieldTable {
    what: "`maps`",
    fields: &[
        optional(
            "period",
            Text("tidegate:addresses:period"),
            "Counts of the current period. Default: `tidegate:addresses:period`.",
        ),
        optional(
            "total",
            Text("tidegate:addresses:total"),
            "Counts of all periods. Default: `tidegate:addresses:total`.",
        ),
    ],
    exactly_one: &[],
};

/// Reads `addresses`. `in_redis` is true if the store is Redis, which then also holds the counts.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    guards: &Guards,
    in_redis: bool,
) -> Option<AddressLimits> {
    let fields = reader.fields(value, &ADDRESSES)?;
    if !in_redis {
        let fault = ConfigFault::new("`addresses` needs Redis, but the store is `memory`");
        reader.error(
            value.key_spot(),
            fault.help("set `store.url`, for example `redis://127.0.0.1:6379`"),
        );
    }
    let period = reader.setting(&fields, "period", period);
    let threshold = reader.setting(&fields, "threshold", |text| {
        whole(text, &(1..=THRESHOLD_MAX))
    });
    let ban = fields
        .get("ban")
        .and_then(|value| ban(reader, &value, guards));
    let (period_map, total_map) = maps(reader, value, &fields, guards);
    let max_addresses = reader.setting(&fields, "max_addresses", |text| {
        whole(text, &(1..=100_000_000))
    });
    let total_lasts = reader.setting(&fields, "total_lasts", lasts);
    let count_banned = reader.setting(&fields, "count_banned", |word| FLAG.parse(word));
    Some(AddressLimits {
        period: period.unwrap_or(AddressLimits::PERIOD),
        threshold: threshold.unwrap_or(AddressLimits::THRESHOLD),
        ban,
        period_map,
        total_map,
        max_addresses: max_addresses.unwrap_or(AddressLimits::MAX_ADDRESSES),
        total_lasts: total_lasts.flatten(),
        count_banned: count_banned.unwrap_or(false),
    })
}

/// Reads the names of the two Redis keys: the counts of the period, and the all-time counts. They must
/// differ from each other and from the sets of guards.
fn maps(
    reader: &mut ConfigReader<'_>,
    addresses: &ConfigValue<'_>,
    fields: &FieldReader<'_>,
    guards: &Guards,
) -> (String, String) {
    let value = fields.get("maps");
    let maps = value.as_ref().and_then(|value| reader.fields(value, &MAPS));
    let mut map = |name, default: &str| {
        let written = maps
            .as_ref()
            .and_then(|maps| reader.setting(maps, name, key_name));
        written.unwrap_or_else(|| default.to_owned())
    };
    let period = map("period", AddressLimits::PERIOD_MAP);
    let total = map("total", AddressLimits::TOTAL_MAP);
    let clash = match () {
        () if period == total => Some("both counts use the same Redis key"),
        () if is_set(guards, &period) || is_set(guards, &total) => {
            Some("a count uses the Redis key of a guard's set")
        }
        () => None,
    };
    if let Some(clash) = clash {
        let spot = value.map_or_else(|| addresses.key_spot(), |maps| maps.spot());
        reader.error(spot, ConfigFault::new(clash).help("use different names"));
    }
    (period, total)
}

/// Returns true if a guard reads its list from a Redis set called `name`. That key cannot be a map as
/// well.
fn is_set(guards: &Guards, name: &str) -> bool {
    let mut guards = guards.iter();
    guards.any(|guard| matches!(&guard.origin, ListOrigin::Redis { set, at: None } if set == name))
}

fn ban(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, guards: &Guards) -> Option<BanRule> {
    let fields = reader.fields(value, &BAN)?;
    let guard = guard(reader, &fields, guards);
    let length = reader.setting(&fields, "for", ban_length);
    Some(BanRule {
        guard: guard?,
        length: length?,
    })
}

/// Reads the name of the guard that refuses banned addresses.
fn guard(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    guards: &Guards,
) -> Option<String> {
    let value = fields.get("guard")?;
    let name = reader.text(&value)?;
    let Some(guard) = guards.iter().find(|guard: &&Guard| guard.name == name) else {
        let fault = ConfigFault::new(format!("there is no guard {}", ConfigFault::quote(&name)));
        let names = guards.iter().map(|guard| guard.name.as_str());
        let help = match closest(&name, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => {
                "add it to `guards`: `{ name: banned, deny: ip, redis: { set: tidegate:banned } }`"
                    .to_owned()
            }
        };
        reader.error(value.spot(), fault.help(help));
        return None;
    };
    let is_fit = guard.subject == KeyPart::Ip
        && guard.effect == GuardEffect::Refuse
        && matches!(guard.origin, ListOrigin::Redis { at: None, .. });
    if !is_fit {
        let fault = ConfigFault::new(format!("guard `{name}` cannot enforce bans"));
        let help = "it needs `deny: ip` and a set in the store's Redis";
        reader.error(value.spot(), fault.help(help));
        return None;
    }
    if !guard.enabled {
        let fault = ConfigFault::new(format!("guard `{name}` is off: no address is banned"));
        let help = "addresses are still counted; remove `mode: off` from the guard to enforce bans";
        reader.warn(value.spot(), fault.help(help));
    }
    Some(name)
}

fn period(text: &str) -> Result<Duration, ConfigFault> {
    let period = Duration::from_micros(duration::parse(text)?);
    if PERIODS.contains(&period) {
        return Ok(period);
    }
    let message = format!("{} is not from 1s to 24h", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `15s`"))
}

/// Reads the length of a ban; `None` is permanent.
fn ban_length(text: &str) -> Result<Option<Duration>, ConfigFault> {
    if text.trim() == "0" {
        return Ok(None);
    }
    let length = Duration::from_micros(duration::parse(text)?);
    match length < Duration::from_secs(1) {
        true if length.is_zero() => Ok(None),
        true => {
            let message = format!("{} is shorter than a second", ConfigFault::quote(text));
            Err(ConfigFault::new(message).help("for example `1h`; `0` is permanent"))
        }
        false => Ok(Some(length)),
    }
}

/// Reads the lifetime of the counts of all periods; `None` means they never expire.
fn lasts(text: &str) -> Result<Option<Duration>, ConfigFault> {
    if text == "never" {
        return Ok(None);
    }
    let length = Duration::from_micros(duration::parse(text)?);
    if length < Duration::from_secs(60) {
        let message = format!("{} is shorter than a minute", ConfigFault::quote(text));
        return Err(ConfigFault::new(message).help("for example `30d`, or `never`"));
    }
    Ok(Some(length))
}

/// Reads the name of a key in Redis.
pub(crate) fn key_name(text: &str) -> Result<String, ConfigFault> {
    let is_fit = !text.is_empty() && text.len() <= NAME_MAX && !text.contains(char::is_control);
    if is_fit {
        return Ok(text.to_owned());
    }
    let message = format!(
        "{} cannot be the name of a key in Redis",
        ConfigFault::quote(text)
    );
    Err(ConfigFault::new(message).help("use up to 512 printable characters"))
}
