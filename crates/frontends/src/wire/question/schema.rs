//! JSON Schema of check requests and reservation requests.

use super::described::{DescriptorField, EntryField, RequestLimitField};
use super::field::QuestionField;
use super::{DESCRIPTORS_MAX, ENTRIES_MAX};
use crate::wire::cost;
use crate::wire::members::JsonMember;
use crate::wire::schema::{closed, object, text_or_null, whole, whole_or_null};
use serde_json::{Value, json};

/// The longest period that the reader accepts, in milliseconds: it has to fit in microseconds. What the engine
/// can count exactly depends on the amount too.
const PERIOD_MS_MAX: u64 = u64::MAX / 1_000;

/// Returns the schema of a check request.
pub(crate) fn check() -> Value {
    question(|field| !matches!(field, QuestionField::AtMs | QuestionField::TtlMs))
}

/// Returns the schema of a reservation request.
pub(crate) fn reservation() -> Value {
    question(|field| field != QuestionField::AtMs)
}

fn question(has: impl Fn(QuestionField) -> bool) -> Value {
    let fields = QuestionField::ALL.iter().copied().filter(|it| has(*it));
    closed(object(fields, &[], field))
}

fn field(field: QuestionField) -> Value {
    match field {
        QuestionField::AtMs => whole_or_null(0),
        QuestionField::Cost => cost::schema_or_null(),
        QuestionField::TtlMs => whole_or_null(1),
        QuestionField::Policy
        | QuestionField::User
        | QuestionField::ApiKey
        | QuestionField::Method
        | QuestionField::Host
        | QuestionField::Path
        | QuestionField::Route => text_or_null(),
        QuestionField::Ip => json!({
            "anyOf": [
                { "type": "string", "format": "ipv4" },
                { "type": "string", "format": "ipv6" },
                { "type": "null" },
            ],
        }),
        QuestionField::Headers => json!({
            "type": ["object", "null"],
            "additionalProperties": {
                "type": ["string", "array", "null"],
                "items": { "type": "string" },
            },
        }),
        QuestionField::Attributes => json!({
            "type": ["object", "null"],
            "additionalProperties": text_or_null(),
        }),
        QuestionField::Descriptors => json!({
            "type": ["array", "null"],
            "maxItems": DESCRIPTORS_MAX,
            "items": descriptor(),
        }),
    }
}

fn descriptor() -> Value {
    let fields = DescriptorField::ALL.iter().copied();
    closed(object(
        fields,
        &[DescriptorField::Entries],
        |field| match field {
            DescriptorField::Entries => json!({
                "type": "array",
                "minItems": 1,
                "maxItems": ENTRIES_MAX,
                "items": entry(),
            }),
            DescriptorField::Hits => cost::hits_schema(),
            DescriptorField::Limit => {
                json!({ "anyOf": [request_limit_schema(), { "type": "null" }] })
            }
        },
    ))
}

fn entry() -> Value {
    let fields = EntryField::ALL;
    closed(object(
        fields.iter().copied(),
        fields,
        |field| match field {
            EntryField::Key => json!({ "type": "string", "minLength": 1 }),
            EntryField::Value => json!({ "type": "string" }),
        },
    ))
}

fn request_limit_schema() -> Value {
    let fields = RequestLimitField::ALL;
    closed(object(
        fields.iter().copied(),
        fields,
        |field| match field {
            RequestLimitField::Amount => whole(0),
            RequestLimitField::PeriodMs => {
                json!({ "type": "integer", "minimum": 1, "maximum": PERIOD_MS_MAX })
            }
        },
    ))
}
