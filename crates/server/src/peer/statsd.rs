//! Statistics: `USE_STATSD`, `STATSD_*` and the variables next to them.

use super::setting;
use super::values::Variables;
use tidegate_config::Setting;
use tidegate_config::statsd::Statsd;

/// The variables about statistics.
const NAMES: [&str; 9] = [
    "USE_STATSD",
    "DISABLE_STATS",
    "STATSD_HOST",
    "STATSD_PORT",
    "STATSD_PROTOCOL",
    "USE_DOG_STATSD",
    "EXTRA_TAGS",
    "STATS_FLUSH_INTERVAL",
    "USE_PROMETHEUS",
];

/// Adds the settings of `statsd`, if any variable sets one: the others then have the defaults of
/// envoyproxy/ratelimit.
pub(super) fn add(variables: &mut Variables<'_>, settings: &mut Vec<Setting>) {
    let Some(first) = NAMES.into_iter().find(|it| variables.get(it).is_some()) else {
        return;
    };
    let is_dog = variables.is_true("USE_DOG_STATSD");
    let wants_none = variables.get("USE_STATSD").is_some() && !variables.is_true("USE_STATSD");
    let mut off = ["DISABLE_STATS", "USE_PROMETHEUS"].into_iter();
    let off = off.find(|name| variables.is_true(name));
    if let Some(name) = off.or((wants_none && !is_dog).then_some("USE_STATSD")) {
        return settings.push(setting(&[name], "statsd.enabled", "false"));
    }
    let mut add = |name: &'static str, path, text: &str| {
        settings.push(setting(&[name], path, text));
    };
    let host = variables.get("STATSD_HOST");
    let port = variables.get("STATSD_PORT");
    let name = match (&host, &port) {
        (_, Some(_)) => "STATSD_PORT",
        (Some(_), None) => "STATSD_HOST",
        (None, None) => first,
    };
    let address = format!(
        "{}:{}",
        host.as_deref().unwrap_or("localhost"),
        port.as_deref().unwrap_or("8125")
    );
    add(name, "statsd.address", &address);
    add(first, "statsd.prefix", Statsd::ENVOY_PREFIX);
    if is_dog {
        add("USE_DOG_STATSD", "statsd.format", "dogstatsd");
        add("USE_DOG_STATSD", "statsd.protocol", "udp");
    } else {
        let protocol = variables.get("STATSD_PROTOCOL");
        let name = protocol.as_ref().map_or(first, |_| "STATSD_PROTOCOL");
        add(
            name,
            "statsd.protocol",
            protocol.as_deref().unwrap_or("tcp"),
        );
    }
    if let Some(micros) = variables.micros("STATS_FLUSH_INTERVAL") {
        add(
            "STATS_FLUSH_INTERVAL",
            "statsd.interval",
            &format!("{micros}us"),
        );
    }
    for (key, value) in variables.pairs("EXTRA_TAGS", ':') {
        settings.push(Setting {
            key: Some(key),
            ..setting(&["EXTRA_TAGS"], "statsd.tags", &value)
        });
    }
}
