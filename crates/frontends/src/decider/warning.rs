//! Alerts that a band of a limit reached a `warn` share, by a request or by a commit beyond its estimate.

use super::Decider;
use tidegate::{AppliedBand, Decision, SettledReservation, ShareWarning, Store, Timestamp};
use tidegate_telemetry::alerts::{Alert, AlertKind, AlertWindow};
use tidegate_telemetry::masked_key::MaskedKey;
use tracing::warn;

/// A band that reached a `warn` share of its limit.
pub(super) struct LimitWarning<'a> {
    policy: &'a str,
    limit: &'a str,
    /// The band as written.
    band: &'a str,
    /// The bucket's key.
    key: &'a str,
    unit: Option<&'a str>,
    /// The share in percent.
    share: u8,
    left: u64,
    capacity: u64,
    at: Timestamp,
    window_ends: Option<Timestamp>,
}

impl<'a> LimitWarning<'a> {
    /// Returns the warning of a band of a decision.
    pub(super) fn of_band(decision: &'a Decision, band: &AppliedBand<'a>) -> Self {
        let at = decision.at();
        let left_us = u64::try_from(band.reset_after().as_micros()).unwrap_or(u64::MAX);
        Self {
            policy: decision.policy(),
            limit: band.limit(),
            band: band.band().unwrap_or_default(),
            key: band.key(),
            unit: band.unit(),
            share: band.reached_share().unwrap_or_default(),
            left: band.remaining(),
            capacity: band.capacity(),
            at,
            window_ends: band.has_window().then(|| at.plus(left_us)),
        }
    }

    /// Returns a warning of a settled reservation.
    pub(super) fn of_commit(settled: &'a SettledReservation, warning: &'a ShareWarning) -> Self {
        Self {
            policy: settled.policy(),
            limit: &warning.limit,
            band: &warning.band,
            key: &warning.key,
            unit: warning.unit.as_deref(),
            share: warning.share,
            left: warning.remaining,
            capacity: warning.capacity,
            at: warning.at,
            window_ends: warning.window_ends,
        }
    }
}

impl<S: Store> Decider<S> {
    /// Sends an alert that a limit is nearly exhausted, or exhausted.
    #[cold]
    pub(super) fn warn_of(&self, warning: &LimitWarning<'_>) {
        let &LimitWarning {
            policy,
            limit,
            band,
            key: raw,
            unit,
            share,
            left,
            capacity,
            at,
            window_ends,
        } = warning;
        let key = MaskedKey(raw);
        let whose = match raw {
            "" => String::new(),
            _ => format!(" for {key}"),
        };
        warn!(event = "limit_warning", policy, limit, band, share, unit, left, capacity, key = %key, "limit reached a share");
        let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
        let message = format!(
            "Limit `{limit}` of policy `{policy}` has reached {share}% of `{band}`{whose}: {left} of \
             {capacity}{unit} left."
        );
        let reached = format!("{policy}/{limit} {band} at {share}%: ");
        let subject = format!("{reached}{key}");
        let alert = Alert::new(AlertKind::Threshold, &subject, message);
        let alert = alert.caused_by(format!("{reached}{raw}"));
        self.bell.ring(match window_ends {
            Some(ends) => alert.within(AlertWindow { at, ends }),
            None => alert,
        });
    }
}
