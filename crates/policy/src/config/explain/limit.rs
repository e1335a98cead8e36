//! Describes a limit.

use super::{band, client, plan, redis, respond, subject, words};
use crate::config::{Config, LocalShare};
use crate::limit::{ChargeTime, Limit, OnFailure, Policy};
use tidegate_core::{Algorithm, LimitMode, OnChange};

/// Describes a limit.
pub(super) fn explain(config: &Config, policy: &Policy, limit: &Limit) -> String {
    let mut lines = vec![heading(policy, limit)];
    lines.push(subject::applies_to(limit));
    lines.extend(replaces(policy, limit));
    if limit.is_unlimited() {
        lines.push("Whatever it applies to is not limited by it: nobody is asked.".to_owned());
        return lines.join("\n  ");
    }
    lines.push(subject::bucket(limit, config.client.ipv6_prefix));
    lines.extend(subject::absent(limit));
    lines.extend(client::untold(&config.client, &limit.key));
    if limit.plan.is_some() {
        lines.extend(plan::rate(config, limit));
    } else {
        let bands = limit.bands.iter();
        lines.extend(bands.map(|band| band::explain(band, limit.charge)));
    }
    lines.extend(limit.warn.map(|percent| {
        format!("When {percent}% of a band are used, it is told of, once until it is less.")
    }));
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
        (false, _) => " (disabled: matches nothing)",
        (true, LimitMode::Shadow) => " (shadow: decided and counted, never refuses)",
        (true, LimitMode::Enforce) if limit.quota_mode => {
            " (quota: of those that a request meets, one that allows is enough)"
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
    (!names.is_empty()).then(|| {
        format!(
            "Where it applies, {} {does} not.",
            words::list(&names, "and")
        )
    })
}

fn charge(limit: &Limit) -> Option<String> {
    let overdraft = limit.bands.iter().map(|band| band.quota.overdraft()).max();
    let overdraft = overdraft.unwrap_or(0);
    let what = match limit.charge {
        ChargeTime::IfFits => {
            return (overdraft > 0).then(|| {
                format!(
                    "What is used over a reservation is charged, down to {overdraft} below empty."
                )
            });
        }
        ChargeTime::Always => "A cost that does not fit is charged all the same",
        ChargeTime::EvenIfRefused => {
            "A request that states its cost and does not fit is refused and charged all the same"
        }
    };
    Some(match overdraft {
        0 => format!("{what}, as far as there is any left."),
        below => format!("{what}, down to {below} below empty."),
    })
}

fn waiting(limit: &Limit) -> Option<String> {
    let waiting = limit.waiting?;
    let order = match limit.algorithm {
        Algorithm::TokenBucket => "each at the place that it reserves in the bucket",
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow => "in the order in which they come to this process",
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
        Some(_) => ", or as long as their plan says",
        None => "",
    };
    if limit.mode == LimitMode::Shadow {
        return Some(format!(
            "If enforced, a refusal would block the client for {length}{or_planned}."
        ));
    }
    Some(format!(
        "Who is refused is refused for {length} from then on{or_planned}, whatever the bucket holds."
    ))
}

/// Describes the effect of changed numbers on buckets, if it is not the default.
fn change(limit: &Limit) -> Option<String> {
    let then = match limit.on_change() {
        OnChange::Scale => "what was used stays the same share of the whole",
        OnChange::Reset => "it begins with new buckets",
        OnChange::Keep => return None,
    };
    Some(format!("When its numbers change, {then}."))
}

fn failure(config: &Config, limit: &Limit) -> String {
    let then = match limit.on_failure.unwrap_or(config.store.on_failure) {
        OnFailure::Local => match config.store.local_share {
            LocalShare::Auto => {
                "this process decides alone, at its share of the amounts".to_owned()
            }
            LocalShare::Millionths(share) => {
                format!(
                    "this process decides alone, at {} of the amounts",
                    percent(share)
                )
            }
        },
        OnFailure::Allow => "the request passes uncounted".to_owned(),
        OnFailure::Deny | OnFailure::Error if limit.mode == LimitMode::Shadow => {
            "the request passes, and counts as one that it would refuse".to_owned()
        }
        OnFailure::Deny => "the request is refused".to_owned(),
        OnFailure::Error => "the answer is an error".to_owned(),
    };
    format!("When the store does not answer in time, {then}.")
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
