//! A warning about limits that count for long in memory: a restart forgets what they have counted.

use super::client::{children, field};
use crate::language::reader::{ConfigReader, ConfigValue};
use tidegate_core::LimitMode;
use tidegate_policy::limit::Limit;
use tidegate_policy::policy::Policy;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;

/// The longest window that needs no snapshot: one hour.
const SHORT_US: u64 = 3_600_000_000;

/// Warns about the first limit with a window longer than an hour if the store is in memory and has no
/// snapshot.
pub(crate) fn warn(
    reader: &mut ConfigReader<'_>,
    (value, policies): (&ConfigValue<'_>, &[Policy]),
    store: &StoreSettings,
) {
    // After an error, `policies` may lack policies that are written.
    if reader.has_errors() || !store.target.is_memory() || store.snapshot.is_some() {
        return;
    }
    for (policy, value) in policies.iter().zip(children(value)) {
        let values = field(&value, "limits");
        let values = values.iter().flat_map(children);
        let limits = policy.limits.iter().zip(values);
        if let Some((limit, value)) = limits.into_iter().find(|(limit, _)| is_long(limit)) {
            let fault = ConfigFault::new(format!(
                "`{}` counts for longer than an hour in memory: after a restart every client starts \
                 with a full bucket",
                limit.name
            ));
            let help = "add `snapshot: { file: PATH }` to `store`, or use Redis";
            let band = field(&value, "rate").or_else(|| field(&value, "bands"));
            reader.warn(band.unwrap_or(value).key_spot(), fault.help(help));
            return;
        }
    }
}

/// Returns true if a limit is enforced and has a window longer than an hour.
fn is_long(limit: &Limit) -> bool {
    let is_long = || {
        limit
            .shapes()
            .iter()
            .any(|band| band.quota.period_us() > SHORT_US)
    };
    limit.enabled && limit.mode == LimitMode::Enforce && is_long()
}
