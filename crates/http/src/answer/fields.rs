//! Header fields that tell a client of its limits, in every dialect. On the way of each request:
//! a value costs one allocation, and nothing is formatted.

use super::facts::{passes_s, reset_epoch, reset_s};
use super::skipped;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;
use tidegate::{AppliedBand, Decision};
use tidegate_policy::respond::{
    Dialect, HeaderNames, LimitHeaderValue, ResetFormat, Respond, XField, XRateLimit,
};

pub(super) const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const X_TYPE: HeaderName = HeaderName::from_static("x-ratelimit-type");
pub(super) const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
pub(super) const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// The attribute that holds who consumes an API.
const CONSUMER: &str = "consumer";

/// How long a list of bands may be. Proxies have little room for the head of an answer, nginx 4 KiB
/// unless told, and to them an answer that does not fit is none.
const LIST_BYTES_MAX: usize = 1 << 10;

const SEPARATOR: &[u8] = b", ";

/// Structured fields have integers of fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// What is told: the band that is reported, and all others that the request met.
struct ReportedBands<'a> {
    decision: &'a Decision,
    binding: AppliedBand<'a>,
    spoken: &'a HeaderNames,
}

/// Adds the fields of every dialect that the policy speaks.
pub(super) fn add(decision: &Decision, headers: &mut HeaderMap) {
    let respond = decision.respond();
    if respond.headers.is_empty() {
        return;
    }
    let Some(binding) = decision.binding() else {
        if let Some(unasked) = decision.unasked() {
            skipped::add(decision, &unasked, headers);
        }
        return;
    };
    let Some(spoken) = binding.spoken() else {
        return;
    };
    let told = ReportedBands {
        decision,
        binding,
        spoken,
    };
    headers.reserve(count(respond));
    for dialect in &respond.headers {
        match dialect {
            Dialect::XRateLimit => told.x_ratelimit(&respond.x_ratelimit, headers),
            Dialect::Draft03 => told.draft_03(headers),
            Dialect::Draft11 => told.draft_11(headers),
            _ => {}
        }
    }
}

/// How many fields there will be.
fn count(respond: &Respond) -> usize {
    let dialects = respond.headers.iter();
    let counts = dialects.map(|dialect| match dialect {
        Dialect::XRateLimit => respond.x_ratelimit.fields.len(),
        Dialect::Draft03 => 3,
        _ => 2,
    });
    counts.sum()
}

// === impl Told ===

impl ReportedBands<'_> {
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
                _ => {}
            }
        }
    }

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

    /// Whom the limit that is reported looks at.
    fn kind(&self) -> &'static str {
        if self.binding.looks_at_attribute(CONSUMER) {
            "consumer"
        } else {
            "route"
        }
    }

    fn draft_03(&self, headers: &mut HeaderMap) {
        let mut limit = FieldBuffer::new();
        push_number(&mut limit, self.binding.capacity());
        list(
            &mut limit,
            self.spoken,
            self.enforced(),
            HeaderNames::draft_03,
        );
        headers.insert(LIMIT, value(&limit));
        headers.insert(REMAINING, number(self.binding.remaining()));
        headers.insert(RESET, number(self.passes_s()));
    }

    fn draft_11(&self, headers: &mut HeaderMap) {
        let mut policy = FieldBuffer::new();
        list(
            &mut policy,
            self.spoken,
            self.enforced(),
            HeaderNames::draft_11,
        );
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

    /// Every band that counted, in the order written.
    fn enforced(&self) -> impl Iterator<Item = &HeaderNames> {
        let applied = self.decision.applied();
        applied
            .filter(|applied| !applied.is_shadow())
            .filter_map(|applied| applied.spoken())
    }

    /// Seconds until the bucket is as good as new, rounded up.
    fn reset_s(&self) -> u64 {
        reset_s(&self.binding)
    }

    /// Seconds until things look better.
    fn passes_s(&self) -> u64 {
        passes_s(&self.binding, self.decision.is_allowed())
    }
}

/// Appends bands, in the order written, as far as there is room; the one that is reported always.
pub(super) fn list<'a>(
    line: &mut FieldBuffer,
    reported: &'a HeaderNames,
    all: impl Iterator<Item = &'a HeaderNames>,
    spell: impl Fn(&HeaderNames) -> &str,
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

/// A number as a value.
pub(super) fn number(number: u64) -> HeaderValue {
    value(itoa::Buffer::new().format(number).as_bytes())
}

pub(super) fn push_number(line: &mut FieldBuffer, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Everything that is written here is visible ASCII.
pub(super) fn value(line: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(line).unwrap_or(HeaderValue::from_static(""))
}
