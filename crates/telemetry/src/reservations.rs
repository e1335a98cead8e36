//! Reservations and their outcomes, counted by policy.

use super::by_policy::{self, ByPolicy, add};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{CheckError, Reservation, SettleError, SettledReservation};
use tidegate_policy::Policy;

/// The outcomes of reserving.
const OUTCOMES: [&str; 3] = ["allowed", "refused", "error"];

/// The outcomes of settling: the words of [`SettleState`](tidegate::SettleState), and `error` if the store
/// was unavailable.
const STATES: [&str; 5] = ["settled", "already", "expired", "kept", "error"];

/// Counters for every policy that takes reservations.
#[derive(Debug)]
pub struct Reservations {
    policies: ByPolicy<ReservationCounters>,
    /// Unknown ids, which therefore belong to no policy.
    unknown: AtomicU64,
}

pub(crate) type ReservationCounterSet = by_policy::PolicyCounterSet<ReservationCounters>;

/// The counters of the reservations of one policy.
#[derive(Debug, Default)]
pub struct ReservationCounters {
    /// In the order of [`OUTCOMES`].
    reserved: [AtomicU64; OUTCOMES.len()],
    /// In the order of [`STATES`].
    settled: [AtomicU64; STATES.len()],
}

impl Reservations {
    /// Creates the counters of `policies`.
    pub fn new(policies: &[Policy]) -> Self {
        Self {
            policies: ByPolicy::new(policies, |policy| policy.reserving().is_some()),
            unknown: AtomicU64::new(0),
        }
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    pub fn lay_out(&self, policies: &[Policy]) -> Arc<ReservationCounterSet> {
        self.policies.lay_out(policies)
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub fn put_back(&self, layout: Arc<ReservationCounterSet>) {
        self.policies.put_back(layout);
    }

    /// Counts the outcome of reserving by a policy. Invalid requests are not counted here.
    pub fn count(&self, policy: &str, reserved: &Result<Reservation, CheckError>) {
        let outcome = match reserved {
            Ok(reservation) if reservation.is_allowed() => "allowed",
            Ok(_) => "refused",
            Err(error) if error.is_bad_request() => return,
            Err(_) => "error",
        };
        self.policies
            .with(policy, |counts| add(&OUTCOMES, &counts.reserved, outcome));
    }

    /// Counts the outcome of settling.
    pub fn count_settled(&self, settled: &Result<SettledReservation, SettleError>) {
        let (policy, state) = match settled {
            Ok(settled) => (settled.policy(), settled.state().as_str()),
            Err(SettleError::Store { policy, .. }) => (policy.as_str(), "error"),
            Err(SettleError::Unknown) => {
                self.unknown.fetch_add(1, Relaxed);
                return;
            }
            Err(_) => return,
        };
        self.policies
            .with(policy, |counts| add(&STATES, &counts.settled, state));
    }

    fn encode_each<const N: usize>(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (label, words): (&str, &[&str; N]),
        counters: impl Fn(&ReservationCounters) -> &[AtomicU64; N],
    ) -> fmt::Result {
        for policy in &*self.policies.all() {
            for (word, counter) in words.iter().zip(counters(&policy.counts)) {
                let labels = [("policy", &*policy.name), (label, word)];
                let count = ConstCounter::new(counter.load(Relaxed));
                count.encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl Collector for Reservations {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if self.policies.all().is_empty() {
            // No policy takes reservations: the series would be noise.
            return Ok(());
        }
        let help = "Reservation requests by policy and outcome.";
        let mut reserved =
            encoder.encode_descriptor("reservations", help, None, MetricType::Counter)?;
        self.encode_each(&mut reserved, ("outcome", &OUTCOMES), |it| &it.reserved)?;
        let help = "Commits and refunds by policy and state of the reservation; unknown \
            reservations have no policy.";
        let mut settled =
            encoder.encode_descriptor("settlements", help, None, MetricType::Counter)?;
        self.encode_each(&mut settled, ("state", &STATES), |it| &it.settled)?;
        let unknown = ConstCounter::new(self.unknown.load(Relaxed));
        unknown.encode(settled.encode_family(&[("policy", ""), ("state", "unknown")])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::SettleState;

    #[test]
    fn every_state_has_its_counter() {
        for state in SettleState::ALL {
            assert!(STATES.contains(&state.as_str()), "{state:?}");
        }
    }
}
