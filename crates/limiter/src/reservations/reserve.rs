//! The terms of a reservation, and its id.

use super::ReservationState;
use super::parts::units_of;
use super::payload::{Payload, SealedCharge, SealedUnit};
use super::reservation::Reservation;
use super::seal::Seal;
use super::warned::SealedWarning;
use crate::backend::Backend;
use crate::decision::{ChargeHome, Decision};
use crate::error::CheckError;
use crate::request::PreparedRequest;
use crate::rules::Rules;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Op, Store};
use tidegate_policy::{Policy, Request};

/// The terms of a reservation.
#[derive(Debug)]
pub(crate) struct ReserveTerms {
    rules: Arc<Rules>,
    /// The index of the policy.
    policy: usize,
    units: Vec<SealedUnit>,
    ttl: Duration,
    ttl_us: u64,
}

/// The seal and the limiter that close an id.
#[derive(Clone, Copy)]
pub(crate) struct IdSealer {
    seal: Seal,
    /// The id of the limiter.
    instance: u64,
}

impl ReservationState {
    /// Returns the seal for an id. Waits for a shared store, if it has to provide the seal.
    pub(crate) async fn sealer<S: Store>(&self, rules: &Rules, backend: &Backend<S>) -> IdSealer {
        IdSealer {
            seal: self.keys.closing(rules, backend).await,
            instance: self.instance,
        }
    }
}

impl ReserveTerms {
    pub(crate) fn of(
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Self, CheckError> {
        let (number, policy) = rules.find(request)?;
        let Some(reserving) = policy.reserving() else {
            let why = "it does not accept reservations; add `reserve: 60s`";
            return Err(CheckError::cannot_reserve(policy, why));
        };
        if policy.holds_permits() {
            let why = "a reservation does not say when a request ends, and it has limits with `concurrent`";
            return Err(CheckError::cannot_reserve(policy, why));
        }
        let ttl = ttl.unwrap_or(reserving.default_ttl).min(reserving.max_ttl);
        let ttl_us = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
        if ttl_us == 0 {
            let why = "the lifetime of a reservation must be at least one microsecond";
            return Err(CheckError::cannot_reserve(policy, why));
        }
        Ok(Self {
            rules: Arc::clone(rules),
            policy: number,
            units: units_of(policy, request),
            ttl,
            ttl_us,
        })
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns an error if an id cannot hold the charges of all asks of a request.
    pub(crate) fn check_fit(&self, question: &PreparedRequest<'_>) -> Result<(), CheckError> {
        let asks = question.asks.iter().zip(question.numbers());
        let bands = asks.filter(|(ask, _)| ask.op != Op::Block);
        let charges = bands.map(|(ask, met)| {
            let warning = SealedWarning::of(question, met);
            (ask.bucket, warning.map_or(0, |it| it.bytes_max()))
        });
        if Payload::fits(&self.policy().name, &self.units, charges) {
            return Ok(());
        }
        let why = "this request matches more limits than a reservation supports";
        Err(CheckError::cannot_reserve(self.policy(), why))
    }

    fn policy(&self) -> &Policy {
        let policy = self.rules.policies.get(self.policy);
        policy.expect("it was found in these rules")
    }

    /// Returns the reservation once it is decided and `charges` are made.
    pub(crate) fn conclude(
        &self,
        decision: Decision,
        charges: Vec<SealedCharge>,
        by: IdSealer,
    ) -> Result<Reservation, CheckError> {
        if !decision.is_allowed() {
            return Ok(Reservation::refused(decision));
        }
        let is_here = charges.iter().any(|it| it.home != ChargeHome::Store);
        let payload = Payload {
            policy: self.policy().name.as_str().into(),
            units: self.units.clone(),
            ttl_us: self.ttl_us,
            instance: if is_here { by.instance } else { 0 },
            buckets: charges,
        };
        match by.seal.close(&payload.write()) {
            Some(id) => Ok(Reservation::held(decision, id, self.ttl)),
            None => {
                let why = "the charge could not be recorded";
                Err(CheckError::cannot_reserve(self.policy(), why))
            }
        }
    }
}
