//! Describes a limit, for `validate --explain`.
//!
//! One paragraph for each limit: whom it counts, how much it allows, what a refused request gets, and what
//! happens while the store is unavailable. Settings that have no effect in this configuration are left out;
//! `validate` warns about those.

// A new algorithm is an error here, and not a guess.
#![deny(clippy::wildcard_enum_match_arm)]

use super::{band, client, plan, redis, respond, subject, words};
use crate::config::Config;
use tidegate_core::{Algorithm, LimitMode, OnChange};
use tidegate_policy::limit::{ChargeTime, Limit, OnFailure};
use tidegate_policy::policy::Policy;
use tidegate_policy::store::LocalShare;

/// Describes a limit.
pub(super) fn explain(config: &Config, policy: &Policy, limit: &Limit) -> String {
    let mut lines = vec![heading(policy, limit)];
    lines.push(subject::applies_to(limit));
    lines.extend(replaces(policy, limit));
    if limit.is_unlimited() {
        lines.push("Requests it applies to are not limited by it.".to_owned());
        return lines.join("\n  ");
    }
    lines.push(subject::bucket(limit, config.client.ipv6_prefix));
    lines.extend(subject::absent(limit));
    lines.extend(client::untold(&config.client, &limit.key));
    lines.extend(unit(limit));
    if limit.plan.is_some() {
        lines.extend(plan::rate(config, limit));
    } else {
        let bands = limit.bands.iter();
        lines.extend(bands.map(|band| band::explain(band, limit.charge)));
    }
    lines.extend(warnings(limit));
    lines.extend(charge(limit));
    lines.extend(waiting(limit));
    lines.extend(block(limit));
    lines.extend(change(limit));
    lines.extend(respond::refusal(limit));
    // A store in memory cannot fail.
    if let Some(redis) = config.store.target.redis() {
        lines.push(redis::keys(config, redis, policy, limit));
        lines.push(failure(config, limit));
    }
    lines.join("\n  ")
}

fn heading(policy: &Policy, limit: &Limit) -> String {
    let state = match (limit.enabled, limit.mode) {
        (false, _) => " (off: matches nothing)",
        (true, LimitMode::Shadow) => " (shadow: decided and counted, never refuses)",
        (true, LimitMode::Enforce) if limit.quota_mode => {
            " (combine any: of those that match a request, one that allows is enough)"
        }
        (true, LimitMode::Enforce) => "",
    };
    format!("Limit `{}` of policy `{}`{state}:", limit.name, policy.name)
}

/// Names the limits that it replaces.
fn replaces(policy: &Policy, limit: &Limit) -> Option<String> {
    let replaced = limit.replaces.iter();
    let names = replaced.filter_map(|number| Some(format!("`{}`", policy.limit(*number)?.name)));
    let names: Vec<String> = names.collect();
    let does = if names.len() == 1 { "does" } else { "do" };
    (!names.is_empty())
        .then(|| format!("If it applies, {} {does} not.", words::list(&names, "and")))
}

fn unit(limit: &Limit) -> Option<String> {
    let unit = limit.unit.reported()?;
    Some(format!(
        "It counts {unit}: of a request's cost, the amount of `{unit}`. Requests without any only read it."
    ))
}

fn warnings(limit: &Limit) -> Option<String> {
    let shares: Vec<String> = limit.warn.percents().map(|it| format!("{it}%")).collect();
    let again = match shares.len() {
        0 => return None,
        1 => "once until usage falls below it",
        _ => "once for each until usage falls below it",
    };
    let shares = words::list(&shares, "or");
    Some(format!(
        "When {shares} of a band is used, an alert is sent, {again}."
    ))
}

fn charge(limit: &Limit) -> Option<String> {
    let overdraft = limit.bands.iter().map(|band| band.quota.overdraft()).max();
    let overdraft = overdraft.unwrap_or(0);
    let what = match limit.charge {
        ChargeTime::IfFits => {
            return (overdraft > 0).then(|| {
                format!("Usage beyond a reservation is charged, down to {overdraft} below empty.")
            });
        }
        ChargeTime::InFlight => return Some(in_flight(limit)),
        ChargeTime::Always => "A cost that does not fit is still charged",
        ChargeTime::EvenIfRefused => {
            "A request that states its cost and does not fit is refused and still charged"
        }
    };
    Some(match overdraft {
        0 => format!("{what}, as far as there is any left."),
        below => format!("{what}, down to {below} below empty."),
    })
}

fn in_flight(limit: &Limit) -> String {
    let hold = words::time(limit.hold.unwrap_or(Limit::HOLD));
    format!("A request counts until it ends; at APIs that do not see its end, for {hold}.")
}

fn waiting(limit: &Limit) -> Option<String> {
    let waiting = limit.waiting?;
    let order = match limit.algorithm {
        Algorithm::TokenBucket => "each at its reserved place in the bucket",
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => "in order of arrival at this instance",
    };
    let at_most = match waiting.max_waiting {
        1 => "one at a time".to_owned(),
        several => format!("at most {several} at a time"),
    };
    Some(format!(
        "Requests that do not fit wait, up to {}, {order}; {at_most}.",
        words::time(waiting.max_wait)
    ))
}

fn block(limit: &Limit) -> Option<String> {
    let block = limit.block.as_ref()?;
    let length = words::period(block.quota.period_us());
    let or_planned = match limit.plan {
        Some(_) => ", or the time set by their plan",
        None => "",
    };
    if limit.mode == LimitMode::Shadow {
        return Some(format!(
            "If enforced, a refusal would block the client for {length}{or_planned}."
        ));
    }
    Some(format!(
        "A refused client is blocked for {length}{or_planned}."
    ))
}

/// Describes the effect of changed numbers on buckets, if it is not the default.
fn change(limit: &Limit) -> Option<String> {
    let then = match limit.on_change() {
        OnChange::Scale => "the used share of each bucket stays the same",
        OnChange::Reset => "all buckets start full",
        OnChange::Keep => return None,
    };
    Some(format!("When its amounts or periods change, {then}."))
}

fn failure(config: &Config, limit: &Limit) -> String {
    let then = match limit.on_failure.unwrap_or(config.store.on_failure) {
        OnFailure::Local => match config.store.local_share {
            LocalShare::Auto => {
                "this instance decides from memory with its share of the amounts".to_owned()
            }
            LocalShare::Millionths(share) => {
                format!(
                    "this instance decides from memory with {} of the amounts",
                    percent(share)
                )
            }
        },
        OnFailure::Allow => "the request passes uncounted".to_owned(),
        OnFailure::Deny | OnFailure::Error if limit.mode == LimitMode::Shadow => {
            "the request passes and is counted as one it would refuse".to_owned()
        }
        OnFailure::Deny => "the request is refused".to_owned(),
        OnFailure::Error => "the response is an error".to_owned(),
    };
    format!("If the store is unavailable, {then}.")
}

/// Formats a share, such as "12.5%".
fn percent(millionths: u32) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    let rest = format!("{rest:04}");
    match rest.trim_end_matches('0') {
        "" => format!("{whole}%"),
        rest => format!("{whole}.{rest}%"),
    }
}
