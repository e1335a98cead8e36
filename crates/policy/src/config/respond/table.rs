//! Every field of `respond`.

use crate::config::fields::optional;
use crate::config::table::Shape::{Either, Flag, List, Map, Text, Whole, Word};
use crate::config::table::{FieldRow, FieldTable};
use crate::config::words::{DIALECT, LIMIT_COUNTS, NAMES, PROFILE, RESET, RLS, X_FIELD};

/// The fields of `respond`, for all policies or for one.
pub(in crate::config) static RESPOND: FieldTable = FieldTable {
    what: "`respond`",
    fields: &[
        optional(
            "profile",
            Word(&PROFILE),
            "Answers as a known system gives them: presets of all that follows down to `body`.",
        ),
        optional(
            "headers",
            Either(&[Word(&DIALECT), List(&Word(&DIALECT))]),
            "Which header fields tell clients of their limits; [] for none; `x-ratelimit` and `draft-11` unless told.",
        ),
        optional(
            "fields",
            Either(&[Word(&X_FIELD), List(&Word(&X_FIELD))]),
            "Which fields `x-ratelimit` has; `limit`, `remaining` and `reset` unless told.",
        ),
        optional(
            "limit",
            Word(&LIMIT_COUNTS),
            "What X-RateLimit-Limit counts; `capacity` unless told.",
        ),
        optional(
            "reset",
            Word(&RESET),
            "How X-RateLimit-Reset is written; `epoch` unless told.",
        ),
        STATUS,
        TYPE,
        MESSAGE,
        CONTENT_TYPE,
        BODY,
        optional(
            "blocked",
            Map(&REFUSAL),
            "What refusals look like where a guard refuses because whoever asks is blocked.",
        ),
        optional(
            "blacklisted",
            Map(&REFUSAL),
            "What they look like where a guard refuses an address on a blacklist.",
        ),
        optional(
            "retry_after",
            Flag,
            "Whether refusals carry Retry-After; true unless told.",
        ),
        optional(
            "correlation",
            Text("X-Correlation-ID"),
            "The header that carries the correlation id; `X-Correlation-ID` unless told.",
        ),
        optional(
            "names",
            Word(&NAMES),
            "`hidden` numbers policies and limits instead of naming them, wherever clients look.",
        ),
        optional(
            "rls",
            Word(&RLS),
            "To which responses Envoy is told to add header fields: `refused` ones unless told, `always` or `none`.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the `respond` of a limit.
pub(in crate::config) static REFUSAL: FieldTable = FieldTable {
    what: "refusal",
    fields: &[STATUS, TYPE, MESSAGE, CONTENT_TYPE, BODY],
    exactly_one: &[],
};

const STATUS: FieldRow = optional(
    "status",
    Whole(400, 599),
    "The status of a refusal; 429 unless told.",
);

const TYPE: FieldRow = optional(
    "type",
    Text("https://example.com/errors/rate-limit"),
    "What {type} says: a URI that tells what kind of problem it is.",
);

const MESSAGE: FieldRow = optional(
    "message",
    Text("Slow down"),
    "What {message} and {detail} say where a limit is exceeded; may have placeholders itself.",
);

const CONTENT_TYPE: FieldRow = optional(
    "content_type",
    Text("application/json"),
    "The content type of a refusal, for which values are escaped; `application/problem+json` unless told.",
);

const BODY: FieldRow = optional(
    "body",
    Text(r#"{"error":"{title}","retry":{retry_after}}"#),
    "The body of a refusal: text with placeholders.",
);
