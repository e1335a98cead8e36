//! Envoy's rate limit service: from a message to a decision and back. `POST /json` uses this too.

use super::response;
use crate::decider::{AskTerms, Decider, RefusalLogging};
use crate::wire::fault::quote;
use crate::wire::protobuf::read::ProtobufError;
use crate::wire::rls::read::RlsCall;
use crate::wire::rls::write::RlsCode;
use std::borrow::Cow;
use tidegate::{AskPurpose, CheckError, Cost, Descriptor, PermitTerm, Request, Rules, Store};
use tidegate_net::promise::Promise;
use tidegate_telemetry::traces::RequestTrace;

/// The reason why a call has no response message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RlsError {
    /// The call is invalid.
    Bad(Cow<'static, str>),
    /// No decision is possible at the moment.
    Undecided,
}

/// The result of a call: a `RateLimitResponse` and the code in it.
pub type RlsResult = Result<(RlsCode, Vec<u8>), RlsError>;

/// Answers `message`, a `RateLimitRequest`: appends a `RateLimitResponse` to `out`.
pub fn answer<'a, S: Store>(
    (decider, trace): (&'a Decider<S>, &'a RequestTrace),
    purpose: AskPurpose,
    message: &[u8],
    mut out: Vec<u8>,
) -> Promise<'a, RlsResult> {
    let call = match RlsCall::read(message) {
        Ok(call) => call,
        Err(malformed) => return Promise::Now(Err(malformed.into())),
    };
    let descriptors = match call.descriptors() {
        Ok(descriptors) => descriptors,
        Err(malformed) => return Promise::Now(Err(malformed.into())),
    };
    let rules = match decider.rules() {
        Ok(rules) => rules,
        Err(error) => return Promise::Now(Err((&error).into())),
    };
    let Some(request) = request(&rules, call.domain, call.cost(), &descriptors) else {
        decider.metrics().grpc.count_unknown(|| quote(call.domain));
        return Promise::Now(Ok((response::nothing(descriptors.len(), &mut out), out)));
    };
    let terms = AskTerms {
        purpose,
        ..AskTerms::pass(trace, RefusalLogging::Here, None)
    };
    decider.ask(&rules, &request, terms, move |outcome| {
        let code = response::decision(outcome?, purpose, &mut out);
        Ok((code, out))
    })
}

/// Returns the check request that a call describes, or `None` if no policy has the domain.
#[inline]
pub fn request<'a>(
    rules: &'a Rules,
    domain: &str,
    cost: impl Into<Cost<'a>>,
    descriptors: &'a [Descriptor<'a>],
) -> Option<Request<'a>> {
    let policy = rules.policy_of_domain(domain)?;
    Some(Request {
        policy: Some(&policy.name),
        cost: cost.into(),
        descriptors,
        // A proxy does not say when the request ends.
        permit: Some(&PermitTerm::HOLD),
        ..Request::new()
    })
}

impl From<ProtobufError> for RlsError {
    fn from(malformed: ProtobufError) -> Self {
        Self::Bad(malformed.words().into())
    }
}

impl From<&CheckError> for RlsError {
    fn from(error: &CheckError) -> Self {
        match error {
            CheckError::BadLimit { reason } => Self::Bad(reason.clone().into()),
            CheckError::BadCost { .. } => Self::Bad(error.to_string().into()),
            // The exact failure goes to the log; the proxy has its own failure setting.
            _ => Self::Undecided,
        }
    }
}
