//! `on_refusal`, `max_wait` and `max_waiting`: requests that wait instead of being refused.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::FieldReader;
use crate::language::words::ON_REFUSAL;
use std::time::Duration;
use tidegate_core::LimitMode;
use tidegate_policy::limit::{ChargeTime, WaitRules};
use tidegate_policy::policy::Evaluate;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// Reads the waiting rules of a limit; `None` if it refuses requests at once.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    mode: LimitMode,
    charge: ChargeTime,
    evaluate: Evaluate,
) -> Option<WaitRules> {
    let word = reader.setting(fields, "on_refusal", |word| ON_REFUSAL.parse(word));
    let max_wait = reader.setting(fields, "max_wait", length);
    let max_waiting = reader.setting(fields, "max_waiting", count);
    let on_refusal = fields.get("on_refusal");
    let (Some(on_refusal), Some(true)) = (&on_refusal, word) else {
        // After an unknown word, do not report the settings that depend on it.
        if on_refusal.is_none() || word.is_some() {
            refuse_alone(reader, fields);
        }
        return None;
    };
    refuse_others(reader, on_refusal, mode, charge);
    if evaluate == Evaluate::Each {
        let fault = ConfigFault::new(
            "`on_refusal: wait` conflicts with `evaluate: each`: other limits would be charged \
             during the wait",
        );
        let help = "remove `on_refusal`, or use `evaluate: all`";
        reader.error(on_refusal.key_spot(), fault.help(help));
    }
    if fields.get("max_wait").is_none() {
        let fault = ConfigFault::new("`on_refusal: wait` requires `max_wait`")
            .help("add `max_wait`, for example `max_wait: 2s`");
        reader.error(on_refusal.key_spot(), fault);
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
            let fault = ConfigFault::new(format!(
                "`{name}` has no effect without `on_refusal: \
                wait`"
            ))
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
        let fault = ConfigFault::new(
            "`on_refusal: wait` conflicts with `mode: shadow`, which refuses no \
                request",
        )
        .help("remove `on_refusal`, or `mode: shadow`");
        reader.error(told.key_spot(), fault);
    }
    if charge != ChargeTime::IfFits {
        let fault = ConfigFault::new(
            "`on_refusal: wait` conflicts with `charge`: the cost may \
            already be spent",
        )
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
    Err(ConfigFault::new(message).help("choose a few seconds, for example `2s`"))
}

fn count(text: &str) -> Result<u32, ConfigFault> {
    let count = whole(text, &(1..=WaitRules::MAX_WAITING_MAX.into()))?;
    Ok(u32::try_from(count).unwrap_or(WaitRules::MAX_WAITING_MAX))
}
