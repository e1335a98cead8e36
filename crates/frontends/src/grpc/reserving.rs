//! Kuadrant's `Reserve` and `Commit`: an estimate before a request, and its real cost afterwards. Works
//! like `POST /v1/reserve` and `/v1/commit`, except that a commit without a reservation is a report.

use super::rls::{self, RlsError};
use super::status::{GrpcCode, GrpcStatus};
use crate::decider::{AskTerms, Decider, RefusalLogging};
use crate::wire::fault::quote;
use crate::wire::rls::reserve::{self, Commit, Reserve};
use crate::wire::rls::write;
use tidegate::{AskPurpose, CheckError, Reservation, SettleError, SettleState, Store};
use tidegate_telemetry::traces::{RequestTrace, UNTRACED};

/// Answers `message`, a `ReserveRequest`: appends a `ReserveResponse` to `out`.
pub(super) async fn reserve<S: Store>(
    (decider, trace): (&Decider<S>, &RequestTrace),
    message: &[u8],
    mut out: Vec<u8>,
) -> Result<Vec<u8>, GrpcStatus> {
    let asked = Reserve::read(message)?;
    let (descriptors, ttl) = (asked.descriptors()?, asked.ttl()?);
    let rules = decider.rules().map_err(|error| unreserved(&error))?;
    let Some(request) = rls::request(&rules, asked.domain(), asked.amount, &descriptors) else {
        decider
            .metrics()
            .grpc
            .count_unknown(|| quote(asked.domain()));
        reserve::reserved(&mut out, write::RlsCode::Ok, None);
        return Ok(out);
    };
    let prepared = decider.prepare_reservation(&rules, &request, ttl);
    let reserved = decider.reserve(prepared, (&rules, &request), trace, None);
    let reservation = reserved.await.map_err(|error| unreserved(&error))?;
    reserve::reserved(&mut out, code(&reservation), reservation.id());
    Ok(out)
}

/// Answers `message`, a `CommitRequest`: appends a `CommitResponse` to `out`.
pub(super) async fn commit<S: Store>(
    decider: &Decider<S>,
    message: &[u8],
    mut out: Vec<u8>,
) -> Result<Vec<u8>, GrpcStatus> {
    let commit = Commit::read(message)?;
    let is_released = match settle(decider, &commit).await? {
        Some(is_released) => is_released,
        // The cost was spent, although the reservation is unknown, so it is charged. Exception: if a
        // matching limit blocks the client (`block`), nothing is charged, because a blocked limit counts
        // nothing.
        None => {
            report(decider, &commit).await?;
            false
        }
    };
    reserve::committed(&mut out, is_released);
    Ok(out)
}

/// Settles the reservation. Returns true if this call or an earlier one released it, and `None` if there
/// is no such reservation.
async fn settle<S: Store>(
    decider: &Decider<S>,
    told: &Commit<'_>,
) -> Result<Option<bool>, GrpcStatus> {
    if told.reservation.is_empty() {
        return Ok(None);
    }
    match decider.commit(told.reservation, told.actual.into()).await {
        Ok(settled) => Ok(Some(matches!(
            settled.state(),
            SettleState::Settled | SettleState::Already
        ))),
        Err(SettleError::Unknown) => Ok(None),
        Err(SettleError::BadCost(fault)) => Err(GrpcStatus::new(
            GrpcCode::InvalidArgument,
            fault.to_string(),
        )),
        // The exact failure goes to the log.
        Err(_) => Err(GrpcStatus::new(
            GrpcCode::Unavailable,
            "settling is not possible at the moment; retry with the same request",
        )),
    }
}

/// Charges the cost that was spent; charges nothing if a matching limit blocks the client.
async fn report<S: Store>(decider: &Decider<S>, told: &Commit<'_>) -> Result<(), GrpcStatus> {
    let descriptors = told.descriptors()?;
    let rules = decider.rules().map_err(|error| unreserved(&error))?;
    match rls::request(&rules, told.domain(), told.actual, &descriptors) {
        Some(request) => {
            let terms = AskTerms {
                purpose: AskPurpose::Report,
                ..AskTerms::pass(&UNTRACED, RefusalLogging::Here, None)
            };
            let reported = decider.ask(&rules, &request, terms, |outcome| {
                outcome.map(drop).map_err(unreserved)
            });
            reported.value().await
        }
        None => {
            decider
                .metrics()
                .grpc
                .count_unknown(|| quote(told.domain()));
            Ok(())
        }
    }
}

fn code(reservation: &Reservation) -> write::RlsCode {
    if reservation.is_allowed() {
        write::RlsCode::Ok
    } else {
        write::RlsCode::OverLimit
    }
}

fn unreserved(error: &CheckError) -> GrpcStatus {
    match error {
        // The call is valid: the policy has to change.
        CheckError::CannotReserve { .. } => {
            GrpcStatus::new(GrpcCode::FailedPrecondition, error.to_string())
        }
        error => RlsError::from(error).into(),
    }
}
