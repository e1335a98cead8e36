//! The fields of `RateLimitRequest` and `RateLimitResponse`, in the order of their definition.

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
        kind: FieldType::Message(of),
    }
}

pub(super) static REQUEST: MessageSchema = MessageSchema {
    fields: &[
        field(1, "domain", "domain", FieldType::Text),
        list(2, "descriptors", "descriptors", &DESCRIPTOR),
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
