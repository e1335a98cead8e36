//! Writes a decision as a `RateLimitResponse`.

use crate::wire::rls::write::{self, CurrentLimit, DescriptorStatus, RlsCode};
use http::HeaderMap;
use std::time::Duration;
use tidegate::{AppliedBand, AskPurpose, Decision};
use tidegate_http::answer::{self, Correlation};
use tidegate_policy::respond::RlsHeaders;
use tracing::debug;

/// Appends the response to a call whose domain no policy has: it passes.
pub(super) fn nothing(descriptors: usize, out: &mut Vec<u8>) -> RlsCode {
    write::code(out, RlsCode::Ok);
    for _ in 0..descriptors {
        write::status(out, &status_without_limit(RlsCode::Ok, 0));
    }
    RlsCode::Ok
}

/// Appends `decision`: the overall code, the status of each descriptor, and the headers for the proxy's
/// client.
pub(super) fn decision(decision: &Decision, purpose: AskPurpose, out: &mut Vec<u8>) -> RlsCode {
    // A report describes a cost that was already spent, so it never refuses.
    let is_report = purpose == AskPurpose::Report;
    let overall = code(decision.is_allowed() || is_report);
    write::code(out, overall);
    for nth in 0..decision.descriptors() {
        write::status(out, &status(decision, nth, is_report));
    }
    let respond = decision.respond();
    match (respond.rls, overall) {
        (RlsHeaders::Always, RlsCode::Ok) => {
            let mut headers = HeaderMap::new();
            answer::inform(decision, &mut headers);
            add_headers(&headers, |_| true, out);
        }
        (RlsHeaders::Always | RlsHeaders::Refused, RlsCode::OverLimit) => refusal(decision, out),
        (RlsHeaders::Refused, RlsCode::Ok) | (RlsHeaders::None, _) => {}
    }
    overall
}

/// Appends the response for the proxy's client: the same as from other frontends, except for the status,
/// which the proxy sets.
fn refusal(decision: &Decision, out: &mut Vec<u8>) {
    let correlation = Correlation::made();
    // A client can report this id, by which an operator finds the refusal in the log.
    let limit = decision.binding().map(|binding| binding.limit());
    debug!(
        event = "refusal_sent",
        correlation = correlation.as_str(),
        limit,
        "refusal sent"
    );
    let refusal = answer::refuse(decision, &correlation);
    // A proxy can write these headers itself, from the statuses. Sent twice, they would contradict each
    // other. `rls: always` requests Tidegate's.
    let is_ours = decision.respond().rls == RlsHeaders::Always;
    let is_told = |name: &str| is_ours || !name.starts_with("x-ratelimit-");
    add_headers(refusal.headers(), is_told, out);
    write::raw_body(out, refusal.body());
}

fn add_headers(headers: &HeaderMap, is_told: impl Fn(&str) -> bool, out: &mut Vec<u8>) {
    let headers_to_send = headers.iter().filter(|(name, _)| is_told(name.as_str()));
    for (name, value) in headers_to_send {
        write::response_header(out, name.as_str(), value.as_bytes());
    }
}

fn code(is_allowed: bool) -> RlsCode {
    if is_allowed {
        RlsCode::Ok
    } else {
        RlsCode::OverLimit
    }
}

fn status(decision: &Decision, nth: usize, is_report: bool) -> DescriptorStatus<'_> {
    let code = code(is_report || decision.descriptor_allowed(nth));
    let Some(applied) = decision.descriptor(nth) else {
        let is_unlimited = decision.descriptor_unlimited(nth);
        return status_without_limit(code, if is_unlimited { u32::MAX } else { 0 });
    };
    DescriptorStatus {
        code,
        limit: limit(&applied),
        remaining: narrow(applied.remaining()),
    }
}

fn status_without_limit(code: RlsCode, remaining: u32) -> DescriptorStatus<'static> {
    DescriptorStatus {
        code,
        limit: None,
        remaining,
    }
}

/// Returns the limit to report: its capacity, and the time in which it refills. This is the content of
/// `RateLimit-Policy`. `None` if no band was checked.
fn limit<'a>(applied: &AppliedBand<'a>) -> Option<CurrentLimit<'a>> {
    let spoken = applied.header_names()?;
    let period = applied.period();
    let is_refill = period == Duration::from_secs(spoken.window_max_s());
    Some(CurrentLimit {
        amount: narrow(applied.capacity()),
        // A capacity that does not refill in exactly one period has no unit that could be named.
        period_us: u64::try_from(period.as_micros())
            .ok()
            .filter(|_| is_refill)
            .unwrap_or(0),
        name: spoken.name(),
        reset_s: answer::passes_after_seconds(applied),
    })
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
