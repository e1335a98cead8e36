//! Header fields of a request that passes because the store did not answer (`on_failure: allow`):
//! the configured limits. The remaining units are unknown, and no field reports them.

use super::facts::up;
use super::fields::{
    FieldBuffer, LIMIT, POLICY, RESET, X_LIMIT, X_RESET, at_ms, list, number, push_number, value,
};
use http::HeaderMap;
use tidegate::{Decision, SkippedBand};
use tidegate_policy::respond::{Dialect, LimitHeaderValue, ResetFormat, XField};

/// Adds the fields of every dialect that the policy speaks, as far as the policy knows their values.
#[cold]
pub(super) fn add(decision: &Decision, unasked: &SkippedBand<'_>, headers: &mut HeaderMap) {
    let Some(spoken) = unasked.header_names() else {
        return;
    };
    let respond = decision.respond();
    let all = || decision.skipped().filter_map(|it| it.header_names());
    let reset_us = unasked.reset_after().map(|reset| {
        let micros = reset.as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX)
    });
    for dialect in &respond.headers {
        match dialect {
            Dialect::XRateLimit => {
                let x_ratelimit = &respond.x_ratelimit;
                if x_ratelimit.fields.contains(&XField::Limit) {
                    let limit = match x_ratelimit.limit {
                        LimitHeaderValue::Capacity => unasked.capacity(),
                        LimitHeaderValue::PerSecond => spoken.per_second(),
                    };
                    headers.insert(X_LIMIT, number(limit));
                }
                let reset = reset_us.zip(unasked.resets_at());
                if let Some((reset_us, at)) =
                    reset.filter(|_| x_ratelimit.fields.contains(&XField::Reset))
                {
                    let at = up(at.as_micros());
                    let reset = match x_ratelimit.reset {
                        ResetFormat::Epoch => number(at),
                        ResetFormat::Delta => number(up(reset_us)),
                        ResetFormat::Rfc3339 => {
                            let mut line = FieldBuffer::new();
                            crate::text::write_instant(at, &mut line);
                            value(&line)
                        }
                    };
                    headers.insert(X_RESET, reset);
                }
            }
            Dialect::Draft03 => {
                let mut limit = FieldBuffer::new();
                push_number(&mut limit, unasked.capacity());
                list(&mut limit, spoken, all(), |names| {
                    names.draft_03(at_ms(decision))
                });
                headers.insert(LIMIT, value(&limit));
                if let Some(reset_us) = reset_us {
                    headers.insert(RESET, number(up(reset_us)));
                }
            }
            // `RateLimit` needs what remains.
            Dialect::Draft11 => {
                let mut policy = FieldBuffer::new();
                list(&mut policy, spoken, all(), |names| {
                    names.draft_11(at_ms(decision))
                });
                headers.insert(POLICY, value(&policy));
            }
        }
    }
}
