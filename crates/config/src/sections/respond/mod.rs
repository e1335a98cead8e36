//! `respond`: responses to clients. A policy's `respond` overrides the global one. A limit's `respond`
//! overrides its refusals.
//!
//! | module | contents |
//! |---|---|
//! | this one | the settings of `respond`, on top of those of the level below |
//! | `refusal` | the settings of a refusal: status, type, message, content type, body |
//! | `wording` | text with placeholders, and the check for valid JSON |

mod refusal;
mod wording;

use crate::environment::NoEnvironment;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::header_name;
use crate::language::table::FieldReader;
use crate::language::words::{
    DIALECT, FLAG, LIMIT_COUNTS, NAMES, PROFILE, RESET, RLS, Words, X_FIELD,
};
use crate::problem::ConfigErrors;
use crate::syntax::{self, NodeKind};
use crate::tables::respond::{REFUSAL, RESPOND};
use refusal::RefusalOwner;
use std::sync::Arc;
use tidegate_policy::guard::AnswerReason;
use tidegate_policy::respond::{Dialect, Layer, RefusalLayer, RefusalStyle, Respond, XField};
use tidegate_policy::text::ConfigFault;

/// Reads the settings of `respond` on their own, outside a configuration.
pub(crate) fn parse_alone(text: &str, name: &str) -> Result<Respond, ConfigErrors> {
    let mut reader = ConfigReader::new(name, text, &NoEnvironment);
    let nothing = ConfigFault::new("`respond` is empty");
    let nothing = nothing.help("write at least one setting, for example `profile: gateway`");
    let (tree, faults) = syntax::read(text, nothing);
    for (place, fault) in faults {
        reader.error((place, String::new()), fault);
    }
    let value = tree.as_ref().map(ConfigValue::root);
    let layer = read(&mut reader, value.as_ref(), &Layer::bottom());
    reader.finish()?;
    Ok(layer.respond())
}

/// Reads a `respond` and puts it on top of `below`.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    below: &Layer,
) -> Layer {
    let Some(fields) = value.and_then(|value| reader.fields(value, &RESPOND)) else {
        return below.clone();
    };
    let profile = reader.setting(&fields, "profile", |word| PROFILE.parse(word));
    let below = match profile {
        Some(profile) => below.clone().with(&profile.layer()),
        None => below.clone(),
    };
    let written = Layer {
        headers: headers(reader, &fields),
        fields: fields
            .get("fields")
            .map(|value| several(reader, &value, &X_FIELD)),
        limit: reader.setting(&fields, "limit", |word| LIMIT_COUNTS.parse(word)),
        reset: reader.setting(&fields, "reset", |word| RESET.parse(word)),
        retry_after: reader.setting(&fields, "retry_after", |word| FLAG.parse(word)),
        correlation: reader.setting(&fields, "correlation", correlation),
        names: reader.setting(&fields, "names", |word| NAMES.parse(word)),
        rls: reader.setting(&fields, "rls", |word| RLS.parse(word)),
        ..Layer::default()
    };
    let refusal = refusal::read(reader, &fields, &below.refusal, RefusalOwner::Policy);
    let mut layer = Layer {
        refusal,
        ..below.with(&written)
    };
    layer.blocked = guarded(reader, &fields, &layer, AnswerReason::Blocked);
    layer.blacklisted = guarded(reader, &fields, &layer, AnswerReason::Blacklisted);
    warn_without_effect(reader, &fields, &layer);
    layer
}

/// Reads the `respond` of a limit and puts it on top of its policy's.
pub(crate) fn read_refusal(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    below: &RefusalLayer,
) -> Option<Arc<RefusalStyle>> {
    let fields = reader.fields(value, &REFUSAL)?;
    let layer = refusal::read(reader, &fields, below, RefusalOwner::Limit);
    Some(Arc::new(layer.refusal()))
}

/// Reads the overrides for refusals by guards with this `reason`.
fn guarded(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    layer: &Layer,
    reason: AnswerReason,
) -> Option<RefusalLayer> {
    let below = match reason {
        AnswerReason::Blacklisted => &layer.blacklisted,
        _ => &layer.blocked,
    };
    let Some(value) = fields.get(reason.as_str()) else {
        return below.clone();
    };
    let fields = reader.fields(&value, &REFUSAL)?;
    let written = refusal::read_own(
        reader,
        &fields,
        &layer.refusal_for(reason),
        RefusalOwner::Limit,
    );
    Some(below.clone().unwrap_or_default().with(&written))
}

fn headers(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<Vec<Dialect>> {
    let value = fields.get("headers")?;
    Some(match &value.node.kind {
        // An empty list means that no header describes limits.
        NodeKind::List(items) if items.is_empty() => Vec::new(),
        _ => several(reader, &value, &DIALECT),
    })
}

/// Reads a word or several words, each at most once.
fn several<T: Clone + PartialEq + Sync>(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    words: &Words<T>,
) -> Vec<T> {
    let mut read = Vec::new();
    for item in reader.one_or_many(value) {
        let Some(meaning) = reader.parse(&item, |word| words.parse(word)) else {
            continue;
        };
        if read.contains(&meaning) {
            let fault = ConfigFault::new(format!("duplicate item in {}", value.name()));
            reader.error(item.spot(), fault.help("write it once"));
        } else {
            read.push(meaning);
        }
    }
    read
}

/// Headers that responses have anyway, or whose values are private.
const NOT_FOR_CORRELATION: [&str; 22] = [
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "host",
    "location",
    "proxy-authorization",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
    "x-denied-reason",
    "x-denied-status",
];

fn correlation(text: &str) -> Result<String, ConfigFault> {
    let name = header_name(text)?;
    let is_taken = |name: &str| NOT_FOR_CORRELATION.contains(&name) || name.contains("ratelimit");
    if is_taken(&name) {
        let message = format!("{} already has another meaning", ConfigFault::quote(text));
        return Err(
            ConfigFault::new(message).help("for example `X-Correlation-ID` or `X-Request-ID`")
        );
    }
    Ok(name)
}

/// Warns about settings that have no effect.
fn warn_without_effect(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, layer: &Layer) {
    let respond = layer.respond();
    let speaks = respond.headers.contains(&Dialect::XRateLimit);
    let has = |field: XField| respond.x_ratelimit.fields.contains(&field);
    for (name, field) in [
        ("fields", None),
        ("limit", Some(XField::Limit)),
        ("reset", Some(XField::Reset)),
    ] {
        let Some(value) = fields.get(name) else {
            continue;
        };
        let (why, help) = if !speaks {
            ("`headers` has no `x-ratelimit`", "add it there")
        } else if field.is_some_and(|field| !has(field)) {
            ("`fields` does not contain it", "add it there")
        } else {
            continue;
        };
        let fault = ConfigFault::new(format!("`{name}` has no effect: {why}"));
        reader.warn(
            value.key_spot(),
            fault.help(format!("{help}, or remove `{name}`")),
        );
    }
}
