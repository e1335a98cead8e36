//! `concurrent` and `hold`: a limit of requests in flight, in place of a rate.

use super::client::{children, field};
use super::waiting;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::FieldReader;
use std::time::Duration;
use tidegate_core::LimitMode;
use tidegate_policy::limit::{Band, ChargeTime, Limit, WaitRules};
use tidegate_policy::policy::{Evaluate, Policy};
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// Settings that count by time, or count something else than requests. They are errors here.
const OF_RATES: [&str; 13] = [
    "burst",
    "unit",
    "algorithm",
    "align",
    "time_zone",
    "week_start",
    "anchor",
    "charge",
    "overdraft",
    "block",
    "on_change",
    "refundable",
    "template",
];

/// Listeners whose callers do not say when a request ends.
const BLIND: [&str; 3] = ["http", "grpc", "resp"];

/// The counting of a limit of requests in flight.
pub(crate) struct InFlight {
    pub(crate) band: Option<Band>,
    pub(crate) waiting: Option<WaitRules>,
    pub(crate) hold: Option<Duration>,
}

/// Reads `concurrent` and what belongs to it; `None` if the limit has a rate.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    (mode, evaluate, reserves): (LimitMode, Evaluate, bool),
) -> Option<InFlight> {
    let hold = reader.setting(fields, "hold", hold);
    let Some(value) = fields.get("concurrent") else {
        if let Some(value) = fields.get("hold") {
            let fault = ConfigFault::new("`hold` has no effect without `concurrent`");
            reader.error(value.key_spot(), fault.help("remove `hold`"));
        }
        return None;
    };
    let band = reader.parse(&value, |text| {
        let permits = whole(text, &(0..=u64::MAX))?;
        Band::concurrent(permits).map_err(ConfigFault::new)
    });
    for name in OF_RATES {
        if let Some(other) = fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` conflicts with `concurrent`"));
            reader.error(other.key_spot(), fault.help(format!("remove `{name}`")));
        }
    }
    if reserves {
        let fault = ConfigFault::new(
            "`concurrent` conflicts with `reserve`: a reservation does not say when a request ends",
        );
        let help = "write the limit in a policy without `reserve`";
        reader.error(value.key_spot(), fault.help(help));
    }
    Some(InFlight {
        band,
        waiting: waiting::read(reader, fields, mode, ChargeTime::IfFits, evaluate),
        hold,
    })
}

fn hold(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (Limit::HOLD_MIN..=Limit::HOLD_MAX).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 1ms to 1d", ConfigFault::quote(text));
    Err(ConfigFault::new(message)
        .help("choose a little more than the longest request, for example `30s`"))
}

/// Reports limits of requests in flight that the store or a listener cannot serve.
pub(crate) fn check(
    reader: &mut ConfigReader<'_>,
    (value, policies): (&ConfigValue<'_>, &[Policy]),
    (listen, store): (Option<&ConfigValue<'_>>, &StoreSettings),
) {
    // After an error, `policies` may lack policies that are written.
    if reader.has_errors() {
        return;
    }
    let blind = BLIND
        .iter()
        .find(|name| listen.is_some_and(|it| field(it, name).is_some()));
    for (policy, value) in policies.iter().zip(children(value)) {
        let values = field(&value, "limits");
        let values = values.iter().flat_map(children);
        for (limit, value) in policy.limits.iter().zip(values) {
            let written = field(&value, "concurrent").filter(|_| limit.enabled);
            let Some(value) = written else {
                continue;
            };
            if !store.target.is_memory() {
                let fault = ConfigFault::new("`concurrent` needs the store `memory`");
                let help =
                    "use `store: { url: memory }`; limits of requests in flight are not shared yet";
                reader.error(value.key_spot(), fault.help(help));
            }
            if let (Some(name), None) = (blind, limit.hold) {
                let fault = ConfigFault::new(format!(
                    "`concurrent` needs `hold`: callers of the listener `{name}` do not say when a request ends"
                ));
                let help = "add the time that a request counts there, for example `hold: 30s`";
                reader.error(value.key_spot(), fault.help(help));
            }
        }
    }
}
