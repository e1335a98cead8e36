//! Envoy's rate limit service: from a message to a decision and back. `POST /json` comes this way too.

use super::tell;
use crate::decider::{Decider, Logged};
use crate::telemetry::traces::Trace;
use crate::wire::protobuf::read::Malformed;
use crate::wire::rls::read::{Call, Descriptors};
use crate::wire::rls::write::Code;
use std::borrow::Cow;
use tidegate::{CheckError, Decision, Descriptor, Request, Rules, Store};

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::doors) enum Purpose {
    /// To decide, and to charge what passes: Envoy's `ShouldRateLimit`.
    Decide,
    /// To tell whether it would pass: Kuadrant's `CheckRateLimit`.
    Test,
    /// To charge what was used already: Kuadrant's `Report`.
    Report,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::doors) enum Unanswered {
    /// Something is wrong with the call.
    Bad(Cow<'static, str>),
    /// Nothing can be decided at the moment.
    Undecided,
}

/// Answers `message`, a `RateLimitRequest`: appends a `RateLimitResponse` to `out`.
pub(in crate::doors) async fn answer<S: Store>(
    (decider, trace): (&Decider<S>, &Trace),
    purpose: Purpose,
    message: &[u8],
    mut out: Vec<u8>,
) -> Result<(Code, Vec<u8>), Unanswered> {
    let call = Call::read(message)?;
    let descriptors = call.descriptors()?;
    let code = match decide((decider, trace), purpose, &call, &descriptors).await? {
        Some(decision) => tell::decision(&decision, purpose, &mut out),
        None => {
            decider.metrics().grpc.count_unknown(call.domain);
            tell::nothing(descriptors.len(), &mut out)
        }
    };
    Ok((code, out))
}

/// The decision; `None` where no policy has the domain.
async fn decide<S: Store>(
    (decider, trace): (&Decider<S>, &Trace),
    purpose: Purpose,
    call: &Call<'_>,
    descriptors: &Descriptors<'_>,
) -> Result<Option<Decision>, Unanswered> {
    let rules = decider.rules()?;
    let Some(request) = request(&rules, call.domain, call.cost(), descriptors) else {
        return Ok(None);
    };
    let leg = trace.leg();
    let outcome = match purpose {
        Purpose::Decide => match decider.decide_at_once(&rules, &request, Logged::Here) {
            Some(at_once) => at_once,
            // Put aside, for most calls need not carry it around.
            None => Box::pin(decider.decide_by(&rules, &request, Logged::Here)).await,
        },
        Purpose::Test => Box::pin(decider.test_by(&rules, &request)).await,
        Purpose::Report => Box::pin(decider.report_by(&rules, &request)).await,
    };
    trace.decided(leg, outcome.as_ref());
    Ok(Some(outcome?))
}

/// The request that a call amounts to; `None` where no policy has the domain.
#[inline]
pub(super) fn request<'a>(
    rules: &'a Rules,
    domain: &str,
    cost: u64,
    descriptors: &'a [Descriptor<'a>],
) -> Option<Request<'a>> {
    let policy = rules.policy_of_domain(domain)?;
    Some(Request {
        policy: Some(&policy.name),
        cost,
        descriptors,
        ..Request::new()
    })
}

impl From<Malformed> for Unanswered {
    fn from(malformed: Malformed) -> Self {
        Self::Bad(malformed.words().into())
    }
}

impl From<CheckError> for Unanswered {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::BadLimit { reason } => Self::Bad(reason.into()),
            // What exactly failed is for the log; the proxy has a rule of its own for this.
            _ => Self::Undecided,
        }
    }
}
