//! Describes the counting of addresses, and alerts.

use super::words::{list, time};
use crate::addresses::{AddressLimits, BanRule};
use crate::alerts::Alerts;
use crate::guard::Guards;

/// Describes the counts, and the ban.
pub(super) fn counting(counted: &AddressLimits, guards: &Guards, ipv6_prefix: u8) -> String {
    let AddressLimits {
        period_map,
        total_map,
        max_addresses,
        ..
    } = counted;
    let period = time(counted.period);
    let but = if counted.count_banned {
        ""
    } else {
        " but those of who is kept out"
    };
    let mut lines = vec![format!(
        "Addresses: every request{but} counts for its client address (IPv6 by /{ipv6_prefix}), in `{period_map}` for {period} and in `{total_map}` {}.",
        match counted.total_lasts {
            Some(lasts) => format!("for {}", time(lasts)),
            None => "for ever".to_owned(),
        }
    )];
    lines.push(format!(
        "Each counts up to {max_addresses} addresses by themselves, and all others as one."
    ));
    let is_off = |ban: &BanRule| guards.iter().any(|it| it.name == ban.guard && !it.enabled);
    lines.push(match &counted.ban {
        Some(ban) if is_off(ban) => format!(
            "Nobody is kept out, however often they ask: guard `{}` is disabled.",
            ban.guard
        ),
        Some(ban) => format!(
            "Who asks {} times in {period} is kept out by guard `{}` {}.",
            counted.threshold,
            ban.guard,
            match ban.length {
                Some(length) => format!("for {}", time(length)),
                None => "until somebody lets it in again".to_owned(),
            }
        ),
        None => "Nobody is kept out, however often they ask.".to_owned(),
    });
    lines.join("\n  ")
}

/// Describes the events that raise an alert. The URL is a secret and is left out.
pub(super) fn alerts(alerts: &Alerts) -> String {
    let kinds: Vec<&str> = alerts.on.iter().map(|kind| kind.as_str()).collect();
    format!(
        "Alerts: a webhook is told of {}, of the same once in {}, each within {}.",
        list(&kinds, "and"),
        time(alerts.repeat),
        time(alerts.timeout)
    )
}
