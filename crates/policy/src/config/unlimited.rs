//! `rate: unlimited`: a limit that applies without counting.

use super::environment::expand;
use super::fault::ConfigFault;
use super::reader::ConfigReader;
use super::table::FieldReader;
use crate::limit::{Evaluate, Limit};
use tidegate_core::LimitMode;

/// The rate of a limit that does not count.
const UNLIMITED: &str = "unlimited";

/// Settings for counting, which are errors here.
const NOT_COUNTED: [&str; 12] = [
    "burst",
    "algorithm",
    "align",
    "charge",
    "overdraft",
    "on_refusal",
    "max_wait",
    "max_waiting",
    "block",
    "on_change",
    "refundable",
    "template",
];

/// Settings that have no effect without refusals, but do no harm.
const IN_VAIN: [&str; 5] = ["key", "missing", "on_failure", "respond", "warn"];

/// Returns true if the rate of a limit is `unlimited`.
pub(super) fn is_unlimited(reader: &ConfigReader<'_>, fields: &FieldReader<'_>) -> bool {
    let Some(rate) = fields.get("rate") else {
        return false;
    };
    let Some(text) = rate.node.as_text() else {
        return false;
    };
    // Errors in the text are reported when it is read.
    let environment = reader.environment_at(rate.node.place);
    expand(text, environment).is_ok_and(|text| text.trim() == UNLIMITED)
}

/// Reports settings for counting, and warns about settings without effect.
pub(super) fn check(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in NOT_COUNTED {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!(
                "`{name}` is for limits that count, and the rate of this one is `unlimited`"
            ));
            reader.error(value.key_spot(), fault.help(format!("remove `{name}`")));
        }
    }
    for name in IN_VAIN {
        if let Some(value) = fields.get(name) {
            let fault =
                ConfigFault::new(format!("`{name}` has no effect: the rate is `unlimited`"));
            reader.warn(value.key_spot(), fault.help("remove it"));
        }
    }
}

/// Warns about an unlimited limit that has no effect: it does not decide alone, is not matched by
/// single descriptors, and replaces no other limit.
pub(super) fn warn_in_vain(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    evaluate: Evaluate,
    limit: &Limit,
) {
    let matters = limit.is_met_by_each()
        || fields.get("replaces").is_some()
        || (evaluate == Evaluate::First && limit.mode == LimitMode::Enforce);
    if let (false, Some(value)) = (matters, fields.get("rate")) {
        let (message, help) = match evaluate {
            Evaluate::First => (
                "a limit that only watches, at a rate of `unlimited`, does nothing",
                "remove `mode: shadow`, or the limit",
            ),
            _ => (
                "`unlimited` lets nobody past the other limits: every one that matches must allow",
                "use `evaluate: first`, or name with `replaces` the limits that shall not apply",
            ),
        };
        reader.warn(value.spot(), ConfigFault::new(message).help(help));
    }
}
