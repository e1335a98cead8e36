//! `addresses`: counts requests by client address and bans addresses that send too many.

use super::duration;
use super::fault::ConfigFault;
use super::fields::{optional, required};
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::whole;
use super::suggest::closest;
use super::table::Shape::{Flag, Map, Text, Whole};
use super::table::{FieldReader, FieldTable};
use super::words::FLAG;
use crate::addresses::{AddressLimits, BanRule};
use crate::guard::{Guard, GuardEffect, Guards, ListOrigin};
use crate::limit::KeyPart;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The longest name of a key in Redis, in bytes.
const NAME_MAX: usize = 512;

/// The highest threshold. No client sends this many requests in a day.
const THRESHOLD_MAX: u64 = 1_000_000_000_000;

/// The range of a period. A shorter period would end before all counts have arrived.
const PERIODS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

/// The fields of `addresses`.
pub(super) static ADDRESSES: FieldTable = FieldTable {
    what: "`addresses`",
    fields: &[
        optional(
            "period",
            Text("15s"),
            "How long a period is, after which counts begin anew, 1s to 24h; 15s unless told.",
        ),
        optional(
            "threshold",
            Whole(1, THRESHOLD_MAX),
            "An address that has asked this often in one period is banned; 10000 unless told.",
        ),
        optional("ban", Map(&BAN), "What becomes of it; nothing unless told."),
        optional("maps", Map(&MAPS), "The names of the counts in Redis."),
        optional(
            "max_addresses",
            Whole(1, 100_000_000),
            "How many addresses are counted by themselves, all others as one; 1000000 unless told.",
        ),
        optional(
            "total_lasts",
            Text("30d"),
            "After how long the counts of all periods begin anew; `never` unless told.",
        ),
        optional(
            "count_banned",
            Flag,
            "Whether requests of those are counted who are kept out; false unless told.",
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
            Text("blacklist"),
            "The guard, of addresses in a set in Redis, that keeps it out.",
        ),
        required("for", Text("1h"), "For how long; `0` is for ever."),
    ],
    exactly_one: &[],
};

/// The fields of `addresses.maps`.
static MAPS: FieldTable = FieldTable {
    what: "`maps`",
    fields: &[
        optional(
            "period",
            Text("CurrentPeriodMap"),
            "The counts of this period; `CurrentPeriodMap` unless told.",
        ),
        optional(
            "total",
            Text("AllIPsMap"),
            "The counts of all periods; `AllIPsMap` unless told.",
        ),
    ],
    exactly_one: &[],
};

/// Reads `addresses`. `in_redis` is true if the store is Redis, which then also holds the counts.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    guards: &Guards,
    in_redis: bool,
) -> Option<AddressLimits> {
    let fields = reader.fields(value, &ADDRESSES)?;
    if !in_redis {
        let fault = ConfigFault::new("addresses are counted in Redis, and the store is `memory`");
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
    let maps = fields.get("maps");
    let maps = maps.and_then(|value| reader.fields(&value, &MAPS));
    let mut map = |name, default: &str| {
        let told = maps
            .as_ref()
            .and_then(|maps| reader.setting(maps, name, key_name));
        told.unwrap_or_else(|| default.to_owned())
    };
    let (period_map, total_map) = (
        map("period", AddressLimits::PERIOD_MAP),
        map("total", AddressLimits::TOTAL_MAP),
    );
    let clash = match () {
        () if period_map == total_map => Some("both counts have the same name in Redis"),
        () if is_set(guards, &period_map) || is_set(guards, &total_map) => {
            Some("counts have the same name in Redis as the set of a guard")
        }
        () => None,
    };
    if let Some(clash) = clash {
        let spot = fields
            .get("maps")
            .map_or_else(|| value.key_spot(), |maps| maps.spot());
        reader.error(
            spot,
            ConfigFault::new(clash).help("give each a name of its own"),
        );
    }
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
            None => "add it to `guards`: `{ name: blacklist, refuse: ip, redis: { set: BlacklistIPsSet } }`".to_owned(),
        };
        reader.error(value.spot(), fault.help(help));
        return None;
    };
    let is_fit = guard.subject == KeyPart::Ip
        && guard.effect == GuardEffect::Refuse
        && matches!(guard.origin, ListOrigin::Redis { at: None, .. });
    if !is_fit {
        let fault = ConfigFault::new(format!("guard `{name}` cannot keep banned addresses out"));
        let help =
            "it needs `refuse: ip`, and a set in the store's own Redis into which they are put";
        reader.error(value.spot(), fault.help(help));
        return None;
    }
    if !guard.enabled {
        let fault = ConfigFault::new(format!("guard `{name}` is off: nobody is banned"));
        let help = "addresses are counted all the same; remove `enabled: false` from the guard to ban again";
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
            Err(ConfigFault::new(message).help("for example `1h`; `0` is for ever"))
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
    if length < Duration::from_mins(1) {
        let message = format!("{} is shorter than a minute", ConfigFault::quote(text));
        return Err(ConfigFault::new(message).help("for example `30d`, or `never`"));
    }
    Ok(Some(length))
}

/// Reads the name of a key in Redis.
pub(super) fn key_name(text: &str) -> Result<String, ConfigFault> {
    let is_fit = !text.is_empty() && text.len() <= NAME_MAX && !text.contains(char::is_control);
    if is_fit {
        return Ok(text.to_owned());
    }
    let message = format!(
        "{} cannot be the name of a key in Redis",
        ConfigFault::quote(text)
    );
    Err(ConfigFault::new(message).help("use up to 512 characters that can be printed"))
}
