//! Header fields that tell a client of its limits, in every dialect. On the way of each request:
//! a value costs one allocation, and nothing is formatted.

use super::facts::{passes_s, reset_epoch, reset_s};
use super::skipped;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;
use std::borrow::Cow;
use tidegate::{AppliedBand, Decision};
use tidegate_policy::respond::{
    Dialect, HeaderNames, LimitHeaderValue, ResetFormat, Respond, XField, XRateLimit,
};

/// `X-RateLimit-Limit`: the capacity, or the rate per second.
pub(super) const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// `X-RateLimit-Remaining`: whole units left.
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// `X-RateLimit-Reset`: time of the reset, in the configured format.
pub(super) const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// `X-RateLimit-Type`: kind of subject of the limit.
const X_TYPE: HeaderName = HeaderName::from_static("x-ratelimit-type");
/// `RateLimit-Limit` of draft 03.
pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
/// `RateLimit-Remaining` of draft 03.
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
/// `RateLimit-Reset` of draft 03, always in seconds from now.
pub(super) const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
/// `RateLimit-Policy` of draft 11.
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// `RateLimit` of draft 11.
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// The attribute that holds who consumes an API.
const CONSUMER: &str = "consumer";

/// Maximum length of a list of bands. Proxies have little room for response headers, nginx 4 KiB by
/// default, and they reject a response that does not fit.
const LIST_BYTES_MAX: usize = 1 << 10;

/// Separator of list members.
const SEPARATOR: &[u8] = b", ";

/// Structured fields have integers of fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// The bands to report: the reported band, and all others that applied to the request.
struct ReportedBands<'a> {
    /// The decision.
    decision: &'a Decision,
    /// The reported band.
    binding: AppliedBand<'a>,
    /// Names and texts of the reported band, prepared with the policy.
    spoken: &'a HeaderNames,
}

/// Adds the fields of every dialect that the policy speaks.
pub(super) fn add(decision: &Decision, headers: &mut HeaderMap) {
    let respond = decision.respond();
    if respond.headers.is_empty() {
        return;
    }
    let Some(binding) = decision.binding() else {
        if let Some(unasked) = decision.skipped_binding() {
            skipped::add(decision, &unasked, headers);
        }
        return;
    };
    let Some(spoken) = binding.header_names() else {
        return;
    };
    let reported = ReportedBands {
        decision,
        binding,
        spoken,
    };
    headers.reserve(count(respond));
    for dialect in &respond.headers {
        match dialect {
            Dialect::XRateLimit => reported.x_ratelimit(&respond.x_ratelimit, headers),
            Dialect::Draft03 => reported.draft_03(headers),
            Dialect::Draft11 => reported.draft_11(headers),
        }
    }
}

/// Returns the number of header fields to add.
fn count(respond: &Respond) -> usize {
    let dialects = respond.headers.iter();
    let counts = dialects.map(|dialect| match dialect {
        Dialect::XRateLimit => respond.x_ratelimit.fields.len(),
        Dialect::Draft03 => 3,
        Dialect::Draft11 => 2,
    });
    counts.sum()
}

// === impl ReportedBands ===

impl ReportedBands<'_> {
    /// Adds the `X-RateLimit-*` fields that the policy selects.
    fn x_ratelimit(&self, spoken_so: &XRateLimit, headers: &mut HeaderMap) {
        for field in &spoken_so.fields {
            match field {
                XField::Limit => {
                    let limit = match spoken_so.limit {
                        LimitHeaderValue::Capacity => self.binding.capacity(),
                        LimitHeaderValue::PerSecond => self.spoken.per_second(),
                    };
                    headers.insert(X_LIMIT, number(limit));
                }
                XField::Remaining => {
                    headers.insert(X_REMAINING, number(self.binding.remaining()));
                }
                XField::Reset => {
                    headers.insert(X_RESET, self.x_reset(spoken_so.reset));
                }
                XField::Type => {
                    headers.insert(X_TYPE, HeaderValue::from_static(self.kind()));
                }
            }
        }
    }

    /// Returns the value of `X-RateLimit-Reset` in the configured format.
    fn x_reset(&self, reset: ResetFormat) -> HeaderValue {
        match reset {
            ResetFormat::Epoch => number(reset_epoch(self.decision, &self.binding)),
            ResetFormat::Delta => number(self.reset_s()),
            ResetFormat::Rfc3339 => {
                let mut line = FieldBuffer::new();
                let at = reset_epoch(self.decision, &self.binding);
                crate::text::write_instant(at, &mut line);
                value(&line)
            }
        }
    }

    /// Returns the kind of subject of the reported limit.
    fn kind(&self) -> &'static str {
        if self.binding.uses_attribute(CONSUMER) {
            "consumer"
        } else {
            "route"
        }
    }

    /// Adds the fields of draft 03: `RateLimit-Limit`, `-Remaining` and `-Reset`.
    fn draft_03(&self, headers: &mut HeaderMap) {
        let mut limit = FieldBuffer::new();
        push_number(&mut limit, self.binding.capacity());
        list(&mut limit, self.spoken, self.enforced(), |names| {
            names.draft_03(at_ms(self.decision))
        });
        headers.insert(LIMIT, value(&limit));
        headers.insert(REMAINING, number(self.binding.remaining()));
        headers.insert(RESET, number(self.passes_s()));
    }

    /// Adds the fields of draft 11: `RateLimit-Policy` and `RateLimit`.
    fn draft_11(&self, headers: &mut HeaderMap) {
        let mut policy = FieldBuffer::new();
        list(&mut policy, self.spoken, self.enforced(), |names| {
            names.draft_11(at_ms(self.decision))
        });
        headers.insert(POLICY, value(&policy));
        let mut state = FieldBuffer::new();
        state.push(b'"');
        state.extend_from_slice(self.spoken.name().as_bytes());
        state.extend_from_slice(b"\";r=");
        push_number(&mut state, self.binding.remaining().min(INTEGER_MAX));
        state.extend_from_slice(b";t=");
        push_number(&mut state, self.passes_s().min(INTEGER_MAX));
        headers.insert(STATE, value(&state));
    }

    /// Returns every band that counted, in the order written.
    fn enforced(&self) -> impl Iterator<Item = &HeaderNames> {
        let applied = self.decision.applied();
        applied
            .filter(|applied| !applied.is_shadow())
            .filter_map(|applied| applied.header_names())
    }

    /// Returns the seconds until the bucket is full again, rounded up.
    fn reset_s(&self) -> u64 {
        reset_s(&self.binding)
    }

    /// Returns the seconds until the limit has room; see [`passes_s`].
    fn passes_s(&self) -> u64 {
        passes_s(&self.binding, self.decision.is_allowed())
    }
}

/// Returns the time of a decision in Unix milliseconds.
pub(super) fn at_ms(decision: &Decision) -> u64 {
    let at = match decision.at().as_micros() {
        0 => decision.wall_time().as_micros(),
        at => at,
    };
    at / 1_000
}

/// Appends bands, in the order written, as far as there is room; the one that is reported always.
pub(super) fn list<'a>(
    line: &mut FieldBuffer,
    reported: &'a HeaderNames,
    all: impl Iterator<Item = &'a HeaderNames>,
    spell: impl Fn(&'a HeaderNames) -> Cow<'a, str>,
) {
    let binding = spell(reported);
    let mut is_binding_due = true;
    for spoken in all {
        let text = spell(spoken);
        let is_binding = std::ptr::eq(spoken, reported);
        let reserved = if is_binding_due && !is_binding {
            binding.len().saturating_add(SEPARATOR.len())
        } else {
            0
        };
        let taken = line.len().saturating_add(reserved);
        let needed = text.len().saturating_add(SEPARATOR.len());
        if taken.saturating_add(needed) <= LIST_BYTES_MAX || is_binding {
            is_binding_due &= !is_binding;
            if !line.is_empty() {
                line.extend_from_slice(SEPARATOR);
            }
            line.extend_from_slice(text.as_bytes());
        }
    }
}

/// A value while it is written.
pub(super) type FieldBuffer = SmallVec<[u8; 128]>;

/// Returns a number as a value.
pub(super) fn number(number: u64) -> HeaderValue {
    value(itoa::Buffer::new().format(number).as_bytes())
}

/// Appends a number in decimal.
pub(super) fn push_number(line: &mut FieldBuffer, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Everything that is written here is visible ASCII.
pub(super) fn value(line: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(line).unwrap_or(HeaderValue::from_static(""))
}
