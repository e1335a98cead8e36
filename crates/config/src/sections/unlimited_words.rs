//! `rate: unlimited`: a limit that applies without counting.

use crate::environment::expand;
use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use tidegate_core::LimitMode;
use tidegate_policy::limit::Limit;
use tidegate_policy::policy::Evaluate;
use tidegate_policy::text::ConfigFault;

/// The rate of a limit that does not count.
const UNLIMITED: &str = "unlimited";

/// Settings for counting, which are errors here.
const NOT_COUNTED: [&str; 15] = [
    "burst",
    "algorithm",
    "align",
    "time_zone",
    "week_start",
    "anchor",
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
pub(crate) fn is_unlimited(reader: &ConfigReader<'_>, fields: &FieldReader<'_>) -> bool {
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
pub(crate) fn check(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in NOT_COUNTED {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` conflicts with the rate `unlimited`"));
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
pub(crate) fn warn_in_vain(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    evaluate: Evaluate,
    limit: &Limit,
) {
    let matters = limit.matches_each_descriptor()
        || fields.get("replaces").is_some()
        || (evaluate == Evaluate::First && limit.mode == LimitMode::Enforce);
    if let (false, Some(value)) = (matters, fields.get("rate")) {
        let (message, help) = match evaluate {
            Evaluate::First => (
                "an `unlimited` limit in shadow mode does nothing",
                "remove `mode: shadow`, or the limit",
            ),
            _ => (
                "`unlimited` has no effect on the other limits: every limit that matches must \
                 allow",
                "use `evaluate: first`, or list in `replaces` the limits that must not apply",
            ),
        };
        reader.warn(value.spot(), ConfigFault::new(message).help(help));
    }
}
