//! Describes the counting of addresses, and alerts.

use super::words::{list, time};
use crate::alerts::Alerts;
use tidegate_policy::addresses::{AddressLimits, BanRule};
use tidegate_policy::guard::Guards;
use tidegate_policy::text::counted as number;

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
        " except those of banned clients"
    };
    let mut lines = vec![format!(
        "Addresses: requests{but} are counted by client address (IPv6 by /{ipv6_prefix}), in \
         `{period_map}` for {period} and in `{total_map}` {}.",
        match counted.total_lasts {
            Some(lasts) => format!("for {}", time(lasts)),
            None => "permanently".to_owned(),
        }
    )];
    lines.push(format!(
        "Each counts up to {} individually; all others share one count.",
        number(max_addresses, "address", "addresses")
    ));
    let is_off = |ban: &BanRule| guards.iter().any(|it| it.name == ban.guard && !it.enabled);
    lines.push(match &counted.ban {
        Some(ban) if is_off(ban) => {
            format!("No address is banned: guard `{}` is disabled.", ban.guard)
        }
        Some(ban) => format!(
            "An address with {} in {period} is banned by guard `{}` {}.",
            number(counted.threshold, "request", "requests"),
            ban.guard,
            match ban.length {
                Some(length) => format!("for {}", time(length)),
                None => "until an administrator unbans it".to_owned(),
            }
        ),
        None => "No address is banned.".to_owned(),
    });
    lines.join("\n  ")
}

/// Describes the events that raise an alert. The URL is a secret and is left out.
pub(super) fn alerts(alerts: &Alerts) -> String {
    let kinds: Vec<&str> = alerts.on.iter().map(|kind| kind.as_str()).collect();
    format!(
        "Alerts: a webhook gets {}; the same alert at most once in {}; timeout {}.",
        list(&kinds, "and"),
        time(alerts.repeat),
        time(alerts.timeout)
    )
}
