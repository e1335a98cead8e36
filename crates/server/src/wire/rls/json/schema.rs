//! The fields of `RateLimitRequest` and `RateLimitResponse`, in the order in which they are defined.

/// A message.
pub(super) struct Message {
    pub(super) fields: &'static [Field],
}

/// A field of a message. JSON knows it by two names, and writes the first.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) snake: &'static str,
    pub(super) is_list: bool,
    pub(super) kind: Kind,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// Base64 in JSON.
    Bytes,
    U32,
    /// A number in a message of its own, so that 0 is told from nothing.
    WrappedU64,
    Bool,
    /// By name, or by number.
    Enum(&'static [(u32, &'static str)]),
    /// Seconds, such as `"42s"`.
    Duration,
    Message(&'static Message),
}

const fn field(number: u32, name: &'static str, snake: &'static str, kind: Kind) -> Field {
    Field {
        number,
        name,
        snake,
        is_list: false,
        kind,
    }
}

const fn list(number: u32, name: &'static str, snake: &'static str, of: &'static Message) -> Field {
    Field {
        number,
        name,
        snake,
        is_list: true,
        kind: Kind::Message(of),
    }
}

pub(super) static REQUEST: Message = Message {
    fields: &[
        field(1, "domain", "domain", Kind::Text),
        list(2, "descriptors", "descriptors", &DESCRIPTOR),
        field(3, "hitsAddend", "hits_addend", Kind::U32),
    ],
};

static DESCRIPTOR: Message = Message {
    fields: &[
        list(1, "entries", "entries", &ENTRY),
        field(2, "limit", "limit", Kind::Message(&OVERRIDE)),
        field(3, "hitsAddend", "hits_addend", Kind::WrappedU64),
        field(4, "isNegativeHits", "is_negative_hits", Kind::Bool),
    ],
};

static ENTRY: Message = Message {
    fields: &[
        field(1, "key", "key", Kind::Text),
        field(2, "value", "value", Kind::Text),
    ],
};

static OVERRIDE: Message = Message {
    fields: &[
        field(1, "requestsPerUnit", "requests_per_unit", Kind::U32),
        field(2, "unit", "unit", Kind::Enum(UNITS)),
    ],
};

pub(super) static RESPONSE: Message = Message {
    fields: &[
        field(1, "overallCode", "overall_code", Kind::Enum(CODES)),
        list(2, "statuses", "statuses", &STATUS),
        list(
            3,
            "responseHeadersToAdd",
            "response_headers_to_add",
            &HEADER,
        ),
        field(5, "rawBody", "raw_body", Kind::Bytes),
    ],
};

static STATUS: Message = Message {
    fields: &[
        field(1, "code", "code", Kind::Enum(CODES)),
        field(2, "currentLimit", "current_limit", Kind::Message(&LIMIT)),
        field(3, "limitRemaining", "limit_remaining", Kind::U32),
        field(
            4,
            "durationUntilReset",
            "duration_until_reset",
            Kind::Duration,
        ),
    ],
};

static LIMIT: Message = Message {
    fields: &[
        field(3, "name", "name", Kind::Text),
        field(1, "requestsPerUnit", "requests_per_unit", Kind::U32),
        field(2, "unit", "unit", Kind::Enum(UNITS)),
    ],
};

static HEADER: Message = Message {
    fields: &[
        field(1, "key", "key", Kind::Text),
        field(2, "value", "value", Kind::Text),
        field(3, "rawValue", "raw_value", Kind::Bytes),
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
