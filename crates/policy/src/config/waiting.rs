//! `on_refusal`, `max_wait` and `max_waiting`: requests that wait instead of being refused.

use super::duration;
use super::fault::ConfigFault;
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::whole;
use super::table::FieldReader;
use super::words::ON_REFUSAL;
use crate::limit::{ChargeTime, Evaluate, WaitRules};
use std::time::Duration;
use tidegate_core::LimitMode;

/// Reads the waiting rules of a limit; `None` if it refuses requests at once.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    mode: LimitMode,
    charge: ChargeTime,
    evaluate: Evaluate,
) -> Option<WaitRules> {
    let word = reader.setting(fields, "on_refusal", |word| ON_REFUSAL.parse(word));
    let max_wait = reader.setting(fields, "max_wait", length);
    let max_waiting = reader.setting(fields, "max_waiting", count);
    let told = fields.get("on_refusal");
    let (Some(told), Some(true)) = (&told, word) else {
        // After an unknown word, do not report the settings that depend on it.
        if told.is_none() || word.is_some() {
            refuse_alone(reader, fields);
        }
        return None;
    };
    refuse_others(reader, told, mode, charge);
    if evaluate == Evaluate::Each {
        let fault = ConfigFault::new(
            "nobody can wait in a policy with `evaluate: each`: what other limits took would be gone meanwhile",
        );
        let help = "remove `on_refusal`, or use `evaluate: all`";
        reader.error(told.key_spot(), fault.help(help));
    }
    if fields.get("max_wait").is_none() {
        let fault = ConfigFault::new("it is not said how long a request may wait")
            .help("add `max_wait`, for example `max_wait: 2s`");
        reader.error(told.key_spot(), fault);
    }
    Some(WaitRules {
        max_wait: max_wait?,
        max_waiting: max_waiting.unwrap_or(WaitRules::MAX_WAITING),
    })
}

/// Reports settings for waiting if requests do not wait.
fn refuse_alone(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in ["max_wait", "max_waiting"] {
        if let Some(value) = fields.get(name) {
            let fault = ConfigFault::new(format!("`{name}` has no effect unless requests wait"))
                .help(format!("add `on_refusal: wait`, or remove `{name}`"));
            reader.error(value.key_spot(), fault);
        }
    }
}

/// Reports waiting for limits that never refuse.
fn refuse_others(
    reader: &mut ConfigReader<'_>,
    told: &ConfigValue<'_>,
    mode: LimitMode,
    charge: ChargeTime,
) {
    if mode == LimitMode::Shadow {
        let fault =
            ConfigFault::new("a limit that only watches refuses nobody, so nobody can wait")
                .help("remove `on_refusal`, or `mode: shadow`");
        reader.error(told.key_spot(), fault);
    }
    if charge != ChargeTime::IfFits {
        let fault = ConfigFault::new("a cost that may have been spent already cannot wait")
            .help("remove `on_refusal`, or use `charge: if-fits`");
        reader.error(told.key_spot(), fault);
    }
}

fn length(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (WaitRules::SHORTEST..=WaitRules::LONGEST).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 1ms to 1h", ConfigFault::quote(text));
    Err(ConfigFault::new(message)
        .help("clients rarely wait longer than a few seconds, for example `2s`"))
}

fn count(text: &str) -> Result<u32, ConfigFault> {
    let count = whole(text, &(1..=WaitRules::MAX_WAITING_MAX.into()))?;
    Ok(u32::try_from(count).unwrap_or(WaitRules::MAX_WAITING_MAX))
}
