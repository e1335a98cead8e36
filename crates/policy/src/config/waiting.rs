//! `on_refusal`, `max_wait` and `max_waiting`: requests that wait instead of being refused.

use super::duration;
use super::fault::Fault;
use super::reader::{Reader, Value};
use super::scalar::whole;
use super::table::Fields;
use super::words::ON_REFUSAL;
use crate::limit::{Charge, Evaluate, Waiting};
use std::time::Duration;
use tidegate_core::Mode;

/// Reads how requests wait, for a limit of this mode; `None` where they are refused.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    mode: Mode,
    charge: Charge,
    evaluate: Evaluate,
) -> Option<Waiting> {
    let word = reader.setting(fields, "on_refusal", |word| ON_REFUSAL.parse(word));
    let max_wait = reader.setting(fields, "max_wait", length);
    let max_waiting = reader.setting(fields, "max_waiting", count);
    let told = fields.get("on_refusal");
    let (Some(told), Some(true)) = (&told, word) else {
        // Of a word that nobody knows it is not known what it needs.
        if told.is_none() || word.is_some() {
            refuse_alone(reader, fields);
        }
        return None;
    };
    refuse_others(reader, told, mode, charge);
    if evaluate == Evaluate::Each {
        let fault = Fault::new(
            "nobody can wait in a policy with `evaluate: each`: what other limits took would be gone meanwhile",
        );
        let help = "remove `on_refusal`, or use `evaluate: all`";
        reader.error(told.key_spot(), fault.help(help));
    }
    if fields.get("max_wait").is_none() {
        let fault = Fault::new("it is not said how long a request may wait")
            .help("add `max_wait`, for example `max_wait: 2s`");
        reader.error(told.key_spot(), fault);
    }
    Some(Waiting {
        max_wait: max_wait?,
        max_waiting: max_waiting.unwrap_or(Waiting::MAX_WAITING),
    })
}

/// What says how to wait says nothing where nobody does.
fn refuse_alone(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    for name in ["max_wait", "max_waiting"] {
        if let Some(value) = fields.get(name) {
            let fault = Fault::new(format!("`{name}` has no effect unless requests wait"))
                .help(format!("add `on_refusal: wait`, or remove `{name}`"));
            reader.error(value.key_spot(), fault);
        }
    }
}

/// Limits that never keep anybody out have nobody who waits.
fn refuse_others(reader: &mut Reader<'_>, told: &Value<'_>, mode: Mode, charge: Charge) {
    if mode == Mode::Shadow {
        let fault = Fault::new("a limit that only watches refuses nobody, so nobody can wait")
            .help("remove `on_refusal`, or `mode: shadow`");
        reader.error(told.key_spot(), fault);
    }
    if charge != Charge::IfFits {
        let fault = Fault::new("a cost that may have been spent already cannot wait")
            .help("remove `on_refusal`, or use `charge: if-fits`");
        reader.error(told.key_spot(), fault);
    }
}

fn length(text: &str) -> Result<Duration, Fault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (Waiting::SHORTEST..=Waiting::LONGEST).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 1ms to 1h", Fault::quote(text));
    Err(Fault::new(message).help("clients rarely wait longer than a few seconds, for example `2s`"))
}

fn count(text: &str) -> Result<u32, Fault> {
    let count = whole(text, &(1..=Waiting::MAX_WAITING_MAX.into()))?;
    Ok(u32::try_from(count).unwrap_or(Waiting::MAX_WAITING_MAX))
}
