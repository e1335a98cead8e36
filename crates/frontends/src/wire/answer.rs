//! A decision, as JSON.

use super::json::write_string;
use super::members::{JsonMember, json_members};
use super::schema::{object, whole, whole_or_null};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate::{AnswerReason, AppliedBand, DecidedBy, Decision, SkippedBand};

json_members! {
    /// A member of a decision, of a descriptor's decision, or of a reservation.
    pub(crate) enum DecisionMember {
        /// True if the request may pass.
        Allowed = "allowed",
        /// The reported limit; `null` if none applied.
        Limit = "limit",
        /// Its band, as written in the configuration; `null` if the limit refused because of a missing
        /// identity or an unavailable store. Absent if no limit applied.
        Band = "band",
        /// The unit that the limit counts. Absent if it counts requests.
        Unit = "unit",
        /// Whole units left; `null` if unknown.
        Remaining = "remaining",
        /// The time until this cost would pass if no other request arrives; 0 if allowed, `null` if waiting
        /// does not help.
        RetryAfterMs = "retry_after_ms",
        /// The time until the bucket is full; `null` if unknown.
        ResetMs = "reset_ms",
        /// True if the descriptor is not limited. Else absent.
        Unlimited = "unlimited",
        /// Present only if the store did not respond: `local` if this instance decided from memory, `failure`
        /// if `on_failure` decided.
        DecidedBy = "decided_by",
        /// The reason. Present only with guards, plans or `block`.
        Reason = "reason",
        /// The guard that decided, if one did.
        Guard = "guard",
        /// One decision for each descriptor of the request. Absent if it has none.
        Descriptors = "descriptors",
        /// A note for the operator about the source of a limit, if there is one.
        Notice = "notice",
        /// The id of the reservation. Absent if it was refused. Its holder can settle the reservation.
        Reservation = "reservation",
        /// The id of the permits that the request holds. Absent if it holds none. Its holder can renew and
        /// release them.
        Id = "id",
        /// The lifetime of the reservation or of the permits. Absent without either.
        ExpiresMs = "expires_ms",
    }
}

impl DecisionMember {
    fn is_of_descriptor(self) -> bool {
        match self {
            Self::Allowed
            | Self::Limit
            | Self::Band
            | Self::Unit
            | Self::Remaining
            | Self::RetryAfterMs
            | Self::ResetMs
            | Self::Unlimited => true,
            Self::DecidedBy
            | Self::Reason
            | Self::Guard
            | Self::Descriptors
            | Self::Notice
            | Self::Reservation
            | Self::Id
            | Self::ExpiresMs => false,
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Allowed | Self::Unlimited => json!({ "type": "boolean" }),
            Self::Limit | Self::Band => json!({ "type": ["string", "null"] }),
            Self::Remaining | Self::RetryAfterMs | Self::ResetMs => whole_or_null(0),
            Self::DecidedBy => {
                let mut words: Vec<_> = DecidedBy::ALL.iter().map(|it| it.as_str()).collect();
                words.retain(|word| *word != DecidedBy::Store.as_str());
                json!({ "type": "string", "enum": words })
            }
            Self::Reason => {
                let words = AnswerReason::ALL.map(AnswerReason::as_str);
                json!({ "type": "string", "enum": words })
            }
            Self::Unit | Self::Guard | Self::Notice | Self::Reservation | Self::Id => {
                json!({ "type": "string" })
            }
            Self::Descriptors => {
                let members = Self::ALL.iter().copied();
                let members = members.filter(|it| it.is_of_descriptor());
                json!({ "type": "array", "items": object(members, &REQUIRED, Self::schema) })
            }
            Self::ExpiresMs => whole(0),
        }
    }
}

/// The members that all decisions have.
const REQUIRED: [DecisionMember; 2] = [DecisionMember::Allowed, DecisionMember::Limit];

/// Returns the schema of a decision.
pub(crate) fn schema() -> Value {
    use DecisionMember::{ExpiresMs, Id, Reservation, Unlimited};
    let members = DecisionMember::ALL.iter().copied();
    let members = members.filter(|it| !matches!(it, Unlimited | Reservation | Id | ExpiresMs));
    object(members, &REQUIRED, DecisionMember::schema)
}

/// Returns the schema of a reservation.
pub(crate) fn reservation_schema() -> Value {
    identified_schema(DecisionMember::Id)
}

/// Returns the schema of a decision with the id of permits.
pub(crate) fn acquired_schema() -> Value {
    identified_schema(DecisionMember::Reservation)
}

/// Returns the schema of a decision with an id, and not with the `other` one.
fn identified_schema(other: DecisionMember) -> Value {
    use DecisionMember::{Notice, Unlimited};
    let members = DecisionMember::ALL.iter().copied();
    let members = members.filter(|it| !matches!(it, Notice | Unlimited) && *it != other);
    object(members, &REQUIRED, DecisionMember::schema)
}

/// Adds an id and its lifetime to a decision that was just written.
pub(crate) fn add_id((member, id): (DecisionMember, &str), ttl: Duration, out: &mut Vec<u8>) {
    // Reopen the object that was just closed.
    out.pop();
    out.extend_from_slice(member.key());
    write_string(id, out);
    out.extend_from_slice(DecisionMember::ExpiresMs.key());
    // Rounded down, so that no client settles or renews too late.
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    out.extend_from_slice(itoa::Buffer::new().format(ttl_ms).as_bytes());
    out.push(b'}');
}

/// Writes a decision: `{"allowed","limit","band","remaining","retry_after_ms","reset_ms"}`.
///
/// If no limit applied, the decision is `{"allowed":true,"limit":null}` and nothing else. `band` is null if
/// the limit refused without evaluating a band, because of a missing identity or an unavailable store.
/// `retry_after_ms` is null if waiting is of no use. Times are rounded up, so that no client retries too
/// early.
///
/// Further fields:
///
/// - `"unit"`, such as `"tokens"`, if the limit does not count requests.
/// - `"decided_by"`, `"local"` or `"failure"`, if the store did not respond. With `on_failure: allow`,
///   `remaining` is null, and so is `reset_ms` unless the window is aligned to the clock.
/// - `"descriptors"`, if the request has descriptors: a list of one such object for each, reported
///   separately. A descriptor that is `unlimited` has that instead of a limit:
///   `{"allowed":true,"limit":null,"unlimited":true}`.
/// - `"reason"`, such as `"allowed"`, `"limited"` or `"blacklisted"`, if the configuration has guards or
///   plans, or the policy a `block`.
/// - `"guard"`, the guard's name, if a guard decided. A refusal by a guard has
///   `"limit":null,"retry_after_ms":null`: no limit was evaluated, and waiting is of no use. If the guard
///   bans an address for a time, `retry_after_ms` is the rest of that time.
#[inline]
pub fn write(decision: &Decision, out: &mut Vec<u8>) {
    match decision.skipped_binding() {
        Some(unasked) => write_unasked(&unasked, out),
        None => write_applied(decision.is_allowed(), decision.binding().as_ref(), out),
    }
    match decision.decided_by() {
        DecidedBy::Store => {}
        other => {
            out.extend_from_slice(DecisionMember::DecidedBy.key());
            write_string(other.as_str(), out);
        }
    }
    if decision.reports_reason() {
        write_reason(decision, out);
    }
    if decision.descriptors() > 0 {
        write_descriptors(decision, out);
    }
    out.push(b'}');
}

/// Writes the policy's figures of a limit that could not be evaluated and lets the request pass.
#[cold]
fn write_unasked(unasked: &SkippedBand<'_>, out: &mut Vec<u8>) {
    write_allowed(true, out);
    out.extend_from_slice(DecisionMember::Limit.key());
    write_string(unasked.limit(), out);
    out.extend_from_slice(DecisionMember::Band.key());
    write_string(unasked.band().unwrap_or_default(), out);
    write_unit(unasked.unit(), out);
    out.extend_from_slice(DecisionMember::Remaining.key());
    out.extend_from_slice(b"null");
    out.extend_from_slice(DecisionMember::RetryAfterMs.key());
    out.push(b'0');
    out.extend_from_slice(DecisionMember::ResetMs.key());
    match unasked.reset_after() {
        Some(reset) => write_number(millis(reset), out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Returns milliseconds, rounded up.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Writes a decision as [`write()`] does, with one more field, `"notice"`, if the caller should know
/// something.
pub fn write_with_notice(decision: &Decision, notice: Option<&str>, out: &mut Vec<u8>) {
    write(decision, out);
    if let Some(notice) = notice {
        // Reopen the object.
        out.pop();
        out.extend_from_slice(DecisionMember::Notice.key());
        write_string(notice, out);
        out.push(b'}');
    }
}

#[cold]
fn write_reason(decision: &Decision, out: &mut Vec<u8>) {
    if decision.is_denied_by_guard() {
        out.extend_from_slice(DecisionMember::RetryAfterMs.key());
        match barred_ms(decision) {
            Some(left_ms) => write_number(left_ms, out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(DecisionMember::Reason.key());
    write_string(decision.reason().as_str(), out);
    if let Some(guard) = decision.guard() {
        out.extend_from_slice(DecisionMember::Guard.key());
        write_string(&guard.name, out);
    }
}

/// Returns the milliseconds until the refusing guard's ban ends, rounded up; `None` if it does not end
/// automatically.
pub fn barred_ms(decision: &Decision) -> Option<u64> {
    decision.banned_for().map(millis)
}

#[cold]
fn write_descriptors(decision: &Decision, out: &mut Vec<u8>) {
    out.extend_from_slice(DecisionMember::Descriptors.key());
    out.push(b'[');
    for nth in 0..decision.descriptors() {
        if nth > 0 {
            out.push(b',');
        }
        let applied = decision.descriptor(nth);
        write_applied(decision.descriptor_allowed(nth), applied.as_ref(), out);
        if decision.descriptor_unlimited(nth) {
            out.extend_from_slice(DecisionMember::Unlimited.key());
            out.extend_from_slice(b"true");
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Writes an object without its closing brace.
#[inline]
fn write_applied(is_allowed: bool, applied: Option<&AppliedBand<'_>>, out: &mut Vec<u8>) {
    write_allowed(is_allowed, out);
    out.extend_from_slice(DecisionMember::Limit.key());
    match applied {
        Some(applied) => write_binding(applied, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Opens the object with its first member, the only one without a comma before it.
#[inline]
fn write_allowed(is_allowed: bool, out: &mut Vec<u8>) {
    out.push(b'{');
    out.extend_from_slice(DecisionMember::Allowed.first_key());
    out.extend_from_slice(if is_allowed { &b"true"[..] } else { b"false" });
}

#[inline]
fn write_binding(binding: &AppliedBand<'_>, out: &mut Vec<u8>) {
    write_string(binding.limit(), out);
    out.extend_from_slice(DecisionMember::Band.key());
    match binding.band() {
        Some(band) => write_string(band, out),
        None => out.extend_from_slice(b"null"),
    }
    write_unit(binding.unit(), out);
    out.extend_from_slice(DecisionMember::Remaining.key());
    write_number(binding.remaining(), out);
    out.extend_from_slice(DecisionMember::RetryAfterMs.key());
    match binding.wait().as_millis() {
        Some(wait_ms) => write_number(wait_ms, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(DecisionMember::ResetMs.key());
    write_number(millis(binding.reset_after()), out);
}

#[inline]
fn write_unit(unit: Option<&str>, out: &mut Vec<u8>) {
    if let Some(unit) = unit {
        out.extend_from_slice(DecisionMember::Unit.key());
        write_string(unit, out);
    }
}

#[inline]
fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::{Limiter, ManualClock, Request, Timestamp};

    const POLICY: &str = "
policies:
  - name: api
    limits:
      - { name: first, match: [{ path: /a }], rate: 3/s burst 1 }
      - { name: keyed, match: [{ path: /b }], key: user, missing: refuse, rate: 1/s }
";

    #[test]
    fn a_response_has_the_documented_fields() {
        let config = tidegate::Config::parse(POLICY, "test", &|_: &str| None);
        let limiter = Limiter::builder()
            .config(config.expect("a valid policy"))
            .clock(ManualClock::at(Timestamp::from_millis(1_000)))
            .build()
            .expect("a limiter in memory");
        let ask = |request: &Request<'_>| {
            let mut out = Vec::new();
            write(
                &limiter.check_now(request).expect("memory answers"),
                &mut out,
            );
            String::from_utf8(out).expect("an answer is text")
        };
        let a = Request::new().path("/a");
        for (request, expected) in [
            (
                a,
                r#"{"allowed":true,"limit":"first","band":"3/s burst 1","remaining":0,"retry_after_ms":0,"reset_ms":334}"#,
            ),
            (
                a,
                r#"{"allowed":false,"limit":"first","band":"3/s burst 1","remaining":0,"retry_after_ms":334,"reset_ms":334}"#,
            ),
            (
                a.cost(2),
                r#"{"allowed":false,"limit":"first","band":"3/s burst 1","remaining":0,"retry_after_ms":null,"reset_ms":334}"#,
            ),
            (
                Request::new().path("/b"),
                r#"{"allowed":false,"limit":"keyed","band":null,"remaining":0,"retry_after_ms":null,"reset_ms":0}"#,
            ),
            (
                Request::new().path("/c"),
                r#"{"allowed":true,"limit":null}"#,
            ),
        ] {
            assert_eq!(ask(&request), expected);
        }
    }

    #[test]
    fn each_descriptor_reports_the_same_as_on_its_own() {
        let policy = "
policies:
  - name: edge
    limits:
      - { name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/s burst 1 }
      - { name: free, match: { descriptor: [user: root] }, rate: unlimited }
";
        let limiter = Limiter::builder()
            .config(tidegate::Config::from_yaml(policy).expect("a valid policy"))
            .clock(ManualClock::at(Timestamp::from_millis(1_000)))
            .build()
            .expect("a limiter in memory");
        let user = |entries| tidegate::Descriptor {
            entries,
            hits: tidegate::DescriptorHits::AsRequest,
            limit: None,
        };
        let described = [
            user(&[("user", "ann")]),
            user(&[("user", "root")]),
            user(&[("un", "known")]),
        ];
        let request = Request::new().descriptors(&described);
        for (expected, wait_ms) in [("true", 0), ("false", 1_000)] {
            let decision = limiter.check_now(&request).expect("memory answers");
            let mut out = Vec::new();
            write(&decision, &mut out);
            let ann = format!(
                r#"{{"allowed":{expected},"limit":"user","band":"1/s burst 1","remaining":0,"retry_after_ms":{wait_ms},"reset_ms":1000"#
            );
            let whole = format!(
                r#"{ann},"descriptors":[{ann}}},{{"allowed":true,"limit":null,"unlimited":true}},{{"allowed":true,"limit":null}}]}}"#
            );
            assert_eq!(String::from_utf8_lossy(&out), whole);
        }
    }
}
