//! A limit: whom it applies to, whose bucket, how much.

use super::band::{self, Counting};
use super::condition;
use super::fault::Fault;
use super::fields::LIMIT;
use super::key;
use super::naming::Naming;
use super::policy::Names;
use super::reader::{Reader, Value};
use super::respond;
use super::scalar::whole;
use super::table::Fields;
use super::template;
use super::waiting;
use super::words::{ALGORITHM, ALIGN, CHARGE, FLAG, MISSING, MODE, ON_FAILURE};
use crate::limit::{KeyPart, Limit};
use crate::respond::RefusalLayer;
use tidegate_core::Algorithm;

/// Reads a limit.
pub(super) fn read(
    reader: &mut Reader<'_>,
    value: &Value<'_>,
    names: &mut Names,
    naming: &mut Naming,
    below: &RefusalLayer,
) -> Option<Limit> {
    let fields = reader.fields(value, &LIMIT)?;
    let name = fields
        .get("name")
        .and_then(|value| names.read(reader, &value));
    let enabled = reader.setting(&fields, "enabled", |word| FLAG.parse(word));
    let conditions = match fields.get("match") {
        Some(value) => condition::read_all(reader, &value),
        None => Vec::new(),
    };
    let key = match fields.get("key") {
        Some(value) => key::read(reader, &value),
        None => vec![KeyPart::Global],
    };
    let missing = reader.setting(&fields, "missing", |word| MISSING.parse(word));
    warn_about_missing(reader, &fields, &key);
    let charge_always = charge_always(reader, &fields);
    let algorithm = algorithm(reader, &fields);
    let overdraft = overdraft(reader, &fields, charge_always);
    let mode = reader.setting(&fields, "mode", |word| MODE.parse(word));
    let mode = mode.unwrap_or_default();
    let waiting = waiting::read(reader, &fields, mode, charge_always);
    let refundable = reader.setting(&fields, "refundable", |word| FLAG.parse(word));
    let counting = Counting {
        algorithm,
        overdraft,
        refundable: refundable.unwrap_or(false),
        max_wait: waiting.map(|waiting| waiting.max_wait),
    };
    let bands = band::read_all(reader, &fields, counting);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let written = fields
        .get("template")
        .and_then(|value| Some((template::read(reader, &value)?, value)));
    let refusal = fields
        .get("respond")
        .and_then(|value| respond::read_refusal(reader, &value, below));
    let mut limit = Limit {
        name: name?,
        enabled: enabled.unwrap_or(true),
        conditions,
        key,
        missing: missing.unwrap_or_default(),
        bands,
        algorithm,
        mode,
        charge_always,
        waiting,
        refundable: counting.refundable,
        on_failure,
        refusal,
        template: None,
    };
    limit.template = naming.template(reader, value, &limit, written);
    Some(limit)
}

/// The algorithm and how its windows align.
fn algorithm(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Algorithm {
    let written = reader.setting(fields, "algorithm", |word| ALGORITHM.parse(word));
    let algorithm = written.unwrap_or_default();
    let Some(value) = fields.get("align") else {
        return algorithm;
    };
    let align = reader.parse(&value, |word| ALIGN.parse(word));
    match (algorithm, align) {
        (Algorithm::FixedWindow(_), Some(align)) => Algorithm::FixedWindow(align),
        // Without knowing the algorithm there is nothing to say about the alignment.
        (_, Some(_)) if written.is_some() || fields.get("algorithm").is_none() => {
            let fault = Fault::new("only fixed windows can be aligned")
                .help("add `algorithm: fixed-window`, or remove `align`");
            reader.error(value.key_spot(), fault);
            algorithm
        }
        _ => algorithm,
    }
}

fn charge_always(reader: &mut Reader<'_>, fields: &Fields<'_>) -> bool {
    let charge = reader.setting(fields, "charge", |word| CHARGE.parse(word));
    charge.unwrap_or(false)
}

fn overdraft(reader: &mut Reader<'_>, fields: &Fields<'_>, charge_always: bool) -> u64 {
    let Some(value) = fields.get("overdraft") else {
        return 0;
    };
    if !charge_always {
        let fault = Fault::new("`overdraft` has no effect unless a cost is always charged")
            .help("add `charge: always`, or remove `overdraft`");
        reader.error(value.key_spot(), fault);
    }
    let overdraft = reader.parse(&value, |text| whole(text, &(0..=u64::MAX)));
    overdraft.unwrap_or(0)
}

fn warn_about_missing(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &[KeyPart]) {
    if let (Some(value), [KeyPart::Global]) = (fields.get("missing"), key) {
        let fault = Fault::new("`missing` has no effect: one bucket for all needs no identity")
            .help("remove it, or say whose bucket with `key`");
        reader.warn(value.key_spot(), fault);
    }
}
