//! `GET /rlconfig`: the limits in force, as lines of text.
//!
//! A limit of descriptors has the format of envoyproxy/ratelimit's dump:
//!
//! ```text
//! messaging.message_type_marketing.to_number: unit=DAY requests_per_unit=5, shadow_mode: false, quota_mode: false
//! ```
//!
//! Any other limit is named by its policy and its name, and has a line for each band. So is a limit whose
//! descriptor may contain a secret.

// A new algorithm is an error here, and not a guess.
#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Write;
use std::time::Duration;
use tidegate_config::statsd::Statsd;
use tidegate_core::{Algorithm, LimitMode, Quota};
use tidegate_frontends::wire::rls::name_of_period;
use tidegate_policy::limit::Limit;
use tidegate_policy::policy::Policy;

/// Writes the limits of `policies`. Disabled limits are omitted.
pub(super) fn text<'p>(policies: impl Iterator<Item = &'p Policy>) -> String {
    let mut text = String::new();
    for policy in policies {
        let limits = policy.limits.iter().enumerate();
        for (number, limit) in limits.filter(|(_, limit)| limit.enabled) {
            let name = Statsd::full_key(policy, number);
            let name = name.replace(char::is_control, "_");
            let is_shadow = limit.mode == LimitMode::Shadow;
            for rate in rates(limit) {
                // Writing to a string cannot fail.
                writeln!(
                    text,
                    "{name}: {rate}, shadow_mode: {is_shadow}, quota_mode: {}",
                    limit.quota_mode
                )
                .ok();
            }
        }
    }
    text
}

/// Returns the rates of a limit, one for each band.
fn rates(limit: &Limit) -> Vec<String> {
    if limit.is_unlimited() {
        return vec!["unit=UNKNOWN requests_per_unit=0".to_owned()];
    }
    let plan = limit.plan.as_ref().map(|_| "rate=plan".to_owned());
    let bands = limit.bands.iter().map(|band| rate(&band.quota));
    plan.into_iter().chain(bands).collect()
}

fn rate(quota: &Quota) -> String {
    let (amount, period) = (quota.amount(), quota.period_us());
    let rate = match name_of_period(period) {
        Some(unit) => format!("unit={unit} requests_per_unit={amount}"),
        None => {
            let period = Duration::from_micros(period);
            format!("period={period:?} requests_per_period={amount}")
        }
    };
    match quota.algorithm() {
        Algorithm::TokenBucket => format!("{rate} burst={}", quota.capacity()),
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow => rate,
        Algorithm::Concurrent => format!("concurrent={amount}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;
    use tidegate_import::{EnvoyOptions, SourceFile, envoy};

    fn dump(yaml: &str) -> String {
        let config = Config::from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}"));
        text(config.written())
    }

    /// The expected lines are those of envoyproxy/ratelimit at commit f2fb157 for the same file, from the
    /// code of its `dump`. Their order is unspecified there.
    #[test]
    fn files_of_envoyproxy_ratelimit_are_parsed_as_in_the_original() {
        let file = SourceFile {
            name: "messaging.yaml".to_owned(),
            text: "
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: { unit: second, requests_per_unit: 500 }
  - key: database
    value: default
    shadow_mode: true
    rate_limit: { unit: week, requests_per_unit: 7 }
  - key: message_type
    value: market*
    descriptors:
      - key: to_number
        quota_mode: true
        rate_limit: { unit: day, requests_per_unit: 5 }
  - key: internal
    rate_limit: { unlimited: true }
"
            .to_owned(),
        };
        let imported = envoy("config", &[file], EnvoyOptions::default()).unwrap();
        assert_eq!(
            dump(&imported.to_yaml()),
            "\
mongo_cps.database_users: unit=SECOND requests_per_unit=500, shadow_mode: false, quota_mode: false
mongo_cps.database_default: unit=WEEK requests_per_unit=7, shadow_mode: true, quota_mode: false
mongo_cps.message_type_market*.to_number: unit=DAY requests_per_unit=5, shadow_mode: false, quota_mode: true
mongo_cps.internal: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false
"
        );
    }

    #[test]
    fn limits_with_no_or_secret_descriptors_are_shown_by_name() {
        let page = dump(
            "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, bands: [10/s burst 50, 100/90s], mode: shadow }
      - { name: off, rate: 1/s, mode: off }
      - { name: key, match: { descriptor: [api_key: hunter2] }, rate: 5/min, algorithm: fixed-window }
",
        );
        assert_eq!(
            page,
            "\
api.per-client: unit=SECOND requests_per_unit=10 burst=50, shadow_mode: true, quota_mode: false
api.per-client: period=90s requests_per_period=100 burst=100, shadow_mode: true, quota_mode: false
api.key: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false
"
        );
    }
}
