//! A decision, as JSON.

use super::json::write_string;
use std::time::Duration;
use tidegate::{AppliedBand, DecidedBy, Decision, SkippedBand};

/// Writes a decision: `{"allowed","limit","band","remaining","retry_after_ms","reset_ms"}`.
///
/// If no limit applied, the decision is `{"allowed":true,"limit":null}` and nothing else. `band` is null if
/// the limit refused without evaluating a band, because of a missing identity or an unavailable store.
/// `retry_after_ms` is null if waiting is of no use. Times are rounded up, so that no client retries too
/// early.
///
/// Further fields:
///
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
    match decision.unasked() {
        Some(unasked) => write_unasked(&unasked, out),
        None => write_applied(decision.is_allowed(), decision.binding().as_ref(), out),
    }
    match decision.decided_by() {
        DecidedBy::Store => {}
        other => {
            out.extend_from_slice(b",\"decided_by\":");
            write_string(other.as_str(), out);
        }
    }
    if decision.tells_reason() {
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
    out.extend_from_slice(b"{\"allowed\":true,\"limit\":");
    write_string(unasked.limit(), out);
    out.extend_from_slice(b",\"band\":");
    write_string(unasked.band().unwrap_or_default(), out);
    out.extend_from_slice(b",\"remaining\":null,\"retry_after_ms\":0,\"reset_ms\":");
    match unasked.reset_after() {
        Some(reset) => write_number(millis(reset), out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Returns milliseconds, rounded up.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Writes a decision as [`write()`] does, with one more field, `"notice"`, if the caller should know
/// something.
pub fn write_with_notice(decision: &Decision, notice: Option<&str>, out: &mut Vec<u8>) {
    write(decision, out);
    if let Some(notice) = notice {
        // Reopen the object.
        out.pop();
        out.extend_from_slice(b",\"notice\":");
        write_string(notice, out);
        out.push(b'}');
    }
}

#[cold]
fn write_reason(decision: &Decision, out: &mut Vec<u8>) {
    if decision.is_barred() {
        out.extend_from_slice(b",\"retry_after_ms\":");
        match barred_ms(decision) {
            Some(left_ms) => write_number(left_ms, out),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b",\"reason\":");
    write_string(decision.reason().as_str(), out);
    if let Some(guard) = decision.guard() {
        out.extend_from_slice(b",\"guard\":");
        write_string(&guard.name, out);
    }
}

/// Returns the milliseconds until the refusing guard's ban ends, rounded up; `None` if it does not end
/// automatically.
pub fn barred_ms(decision: &Decision) -> Option<u64> {
    decision.barred_for().map(millis)
}

#[cold]
fn write_descriptors(decision: &Decision, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"descriptors\":[");
    for nth in 0..decision.descriptors() {
        if nth > 0 {
            out.push(b',');
        }
        let applied = decision.descriptor(nth);
        write_applied(decision.descriptor_allowed(nth), applied.as_ref(), out);
        if decision.descriptor_unlimited(nth) {
            out.extend_from_slice(b",\"unlimited\":true");
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Writes an object without its closing brace.
#[inline]
fn write_applied(is_allowed: bool, applied: Option<&AppliedBand<'_>>, out: &mut Vec<u8>) {
    let allowed: &[u8] = if is_allowed {
        b"{\"allowed\":true,\"limit\":"
    } else {
        b"{\"allowed\":false,\"limit\":"
    };
    out.extend_from_slice(allowed);
    match applied {
        Some(applied) => write_binding(applied, out),
        None => out.extend_from_slice(b"null"),
    }
}

#[inline]
fn write_binding(binding: &AppliedBand<'_>, out: &mut Vec<u8>) {
    write_string(binding.limit(), out);
    out.extend_from_slice(b",\"band\":");
    match binding.band() {
        Some(band) => write_string(band, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"remaining\":");
    write_number(binding.remaining(), out);
    out.extend_from_slice(b",\"retry_after_ms\":");
    match binding.wait().as_millis() {
        Some(wait_ms) => write_number(wait_ms, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"reset_ms\":");
    write_number(millis(binding.reset_after()), out);
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
    fn an_answer_has_the_fields_that_were_promised() {
        let config = tidegate::Config::parse(POLICY, "test", &|_: &str| None);
        let limiter = Limiter::builder()
            .config(config.expect("the policy is sound"))
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
    fn of_each_descriptor_is_told_what_is_told_of_it_alone() {
        let policy = "
policies:
  - name: edge
    limits:
      - { name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/s burst 1 }
      - { name: free, match: { descriptor: [user: root] }, rate: unlimited }
";
        let limiter = Limiter::builder()
            .config(tidegate::Config::from_yaml(policy).expect("the policy is sound"))
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
