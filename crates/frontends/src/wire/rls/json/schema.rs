//! The fields of `RateLimitRequest` and `RateLimitResponse`, in the order of their definition.

use crate::wire::schema::closed;
use serde_json::{Map, Value, json};

/// The schema of a message.
pub(super) struct MessageSchema {
    pub(super) fields: &'static [MessageField],
}

/// A field of a message. Both names are accepted in JSON, and the first is written.
pub(super) struct MessageField {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) snake: &'static str,
    pub(super) is_list: bool,
    /// True if a request without it, or with an empty one, is invalid.
    is_required: bool,
    pub(super) kind: FieldType,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum FieldType {
    Text,
    /// Base64 in JSON.
    Bytes,
    U32,
    /// A number wrapped in a message, so that 0 differs from absent.
    WrappedU64,
    Bool,
    /// An enumeration value, by name or by number.
    Enum(&'static [(u32, &'static str)]),
    /// Seconds, such as `"42s"`.
    Duration,
    Message(&'static MessageSchema),
}

// === impl MessageSchema ===

impl MessageSchema {
    /// Returns the JSON Schema of a message that is read. `null` means absent, and numbers may be text.
    pub(super) fn request_schema(&self) -> Value {
        closed(self.object(&|field| {
            let item = match field.kind {
                FieldType::Message(message) => message.request_schema(),
                kind => kind.read(),
            };
            let schema = field.listed(&item);
            if field.is_required {
                return not_empty(schema);
            }
            json!({ "anyOf": [schema, { "type": "null" }] })
        }))
    }

    /// Returns the JSON Schema of a message that is written. Fields with a default value are absent.
    pub(super) fn response_schema(&self) -> Value {
        self.object(&|field| {
            let item = match field.kind {
                FieldType::Message(message) => message.response_schema(),
                kind => kind.written(),
            };
            field.listed(&item)
        })
    }

    fn object(&self, schema: &dyn Fn(&MessageField) -> Value) -> Value {
        let fields = self.fields.iter();
        let properties: Map<String, Value> = fields
            .map(|field| (field.name.to_owned(), schema(field)))
            .collect();
        let mut object = json!({ "type": "object", "properties": properties });
        let required = self.fields.iter().filter(|field| field.is_required);
        let required: Vec<_> = required.map(|field| field.name).collect();
        if let (false, Value::Object(object)) = (required.is_empty(), &mut object) {
            object.insert("required".to_owned(), required.into());
        }
        object
    }
}

/// Returns the schema of a text or a list that is not empty.
fn not_empty(mut schema: Value) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.insert("minLength".to_owned(), 1.into());
        schema.insert("minItems".to_owned(), 1.into());
    }
    schema
}

impl MessageField {
    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    fn listed(&self, item: &Value) -> Value {
        if self.is_list {
            json!({ "type": "array", "items": item })
        } else {
            item.clone()
        }
    }
}

impl FieldType {
    fn read(self) -> Value {
        match self {
            Self::U32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
            Self::WrappedU64 => {
                json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]{1,19}$" })
            }
            kind => kind.written(),
        }
    }

    fn written(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Self::U32 => json!({ "type": "integer", "minimum": 0 }),
            Self::WrappedU64 => json!({ "type": "string", "pattern": "^[0-9]+$" }),
            Self::Bool => json!({ "type": "boolean" }),
            Self::Enum(names) => {
                let names: Vec<_> = names.iter().map(|(_, name)| name).collect();
                json!({ "type": "string", "enum": names })
            }
            Self::Duration => json!({ "type": "string", "pattern": "^[0-9]+s$" }),
            // The caller writes the members.
            Self::Message(_) => json!({ "type": "object" }),
        }
    }
}

const fn field(
    number: u32,
    name: &'static str,
    snake: &'static str,
    kind: FieldType,
) -> MessageField {
    MessageField {
        number,
        name,
        snake,
        is_list: false,
        is_required: false,
        kind,
    }
}

const fn list(
    number: u32,
    name: &'static str,
    snake: &'static str,
    of: &'static MessageSchema,
) -> MessageField {
    MessageField {
        number,
        name,
        snake,
        is_list: true,
        is_required: false,
        kind: FieldType::Message(of),
    }
}

pub(super) static REQUEST: MessageSchema = MessageSchema {
    fields: &[
        field(1, "domain", "domain", FieldType::Text).required(),
        list(2, "descriptors", "descriptors", &DESCRIPTOR).required(),
        field(3, "hitsAddend", "hits_addend", FieldType::U32),
    ],
};

static DESCRIPTOR: MessageSchema = MessageSchema {
    fields: &[
        list(1, "entries", "entries", &ENTRY),
        field(2, "limit", "limit", FieldType::Message(&OVERRIDE)),
        field(3, "hitsAddend", "hits_addend", FieldType::WrappedU64),
        field(4, "isNegativeHits", "is_negative_hits", FieldType::Bool),
    ],
};

static ENTRY: MessageSchema = MessageSchema {
    fields: &[
        field(1, "key", "key", FieldType::Text),
        field(2, "value", "value", FieldType::Text),
    ],
};

static OVERRIDE: MessageSchema = MessageSchema {
    fields: &[
        field(1, "requestsPerUnit", "requests_per_unit", FieldType::U32),
        field(2, "unit", "unit", FieldType::Enum(UNITS)),
    ],
};

pub(super) static RESPONSE: MessageSchema = MessageSchema {
    fields: &[
        field(1, "overallCode", "overall_code", FieldType::Enum(CODES)),
        list(2, "statuses", "statuses", &STATUS),
        list(
            3,
            "responseHeadersToAdd",
            "response_headers_to_add",
            &HEADER,
        ),
        field(5, "rawBody", "raw_body", FieldType::Bytes),
    ],
};

static STATUS: MessageSchema = MessageSchema {
    fields: &[
        field(1, "code", "code", FieldType::Enum(CODES)),
        field(
            2,
            "currentLimit",
            "current_limit",
            FieldType::Message(&LIMIT),
        ),
        field(3, "limitRemaining", "limit_remaining", FieldType::U32),
        field(
            4,
            "durationUntilReset",
            "duration_until_reset",
            FieldType::Duration,
        ),
    ],
};

static LIMIT: MessageSchema = MessageSchema {
    fields: &[
        field(3, "name", "name", FieldType::Text),
        field(1, "requestsPerUnit", "requests_per_unit", FieldType::U32),
        field(2, "unit", "unit", FieldType::Enum(UNITS)),
    ],
};

static HEADER: MessageSchema = MessageSchema {
    fields: &[
        field(1, "key", "key", FieldType::Text),
        field(2, "value", "value", FieldType::Text),
        field(3, "rawValue", "raw_value", FieldType::Bytes),
    ],
};

const CODES: &[(u32, &str)] = &[(0, "UNKNOWN"), (1, "OK"), (2, "OVER_LIMIT")];

const UNITS: &[(u32, &str)] = &[
    (0, "UNKNOWN"),
    (1, "SECOND"),
    (2, "MINUTE"),
    (3, "HOUR"),
    (4, "DAY"),
    (5, "MONTH"),
    (6, "YEAR"),
    (7, "WEEK"),
];
