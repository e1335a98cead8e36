//! Every field of `respond`.

use crate::language::table::Shape::{Either, Flag, List, Map, Text, Whole, Word};
use crate::language::table::optional;
use crate::language::table::{FieldRow, FieldTable};
use crate::language::words::{DIALECT, LIMIT_COUNTS, NAMES, PROFILE, RESET, RLS, X_FIELD};

/// The fields of `respond`, for all policies or for one.
pub(crate) static RESPOND: FieldTable = FieldTable {
    what: "`respond`",
    fields: &[
        optional(
            "profile",
            Word(&PROFILE),
            "Preset for the response format of a known system; sets the fields below down to `body`. \
             Fields next to it override the preset; the preset overrides fields of outer levels. \
             Default: `default`.",
        ),
        optional(
            "headers",
            Either(&[Word(&DIALECT), List(&Word(&DIALECT))]),
            "Rate limit header formats; `[]` for none. Default: `[\"x-ratelimit\", \"draft-11\"]`.",
        ),
        optional(
            "fields",
            Either(&[Word(&X_FIELD), List(&Word(&X_FIELD))]),
            "Headers of `x-ratelimit`. `type` is `consumer` if the attribute `consumer` is in the \
             limit's key and the request had it, or if each of its conditions has it; else `route`. \
             Default: `[\"limit\", \"remaining\", \"reset\"]`.",
        ),
        optional(
            "limit",
            Word(&LIMIT_COUNTS),
            "Meaning of `X-RateLimit-Limit`: `capacity`, the most units available at once; \
             `per-second`, the rate, whole and at least 1. Default: `capacity`.",
        ),
        optional(
            "reset",
            Word(&RESET),
            "Format of `X-RateLimit-Reset`: `epoch`, Unix seconds; `delta`, seconds from now; \
             `rfc3339`, such as `2023-11-14T22:13:20Z`. Default: `epoch`.",
        ),
        STATUS,
        TYPE,
        MESSAGE,
        CONTENT_TYPE,
        BODY,
        optional(
            "blocked",
            Map(&REFUSAL),
            "Overrides for refusals by a guard with reason `blocked`. Default: as other refusals, \
             except `type` and `message`, which are about limits.",
        ),
        optional(
            "blacklisted",
            Map(&REFUSAL),
            "Overrides for refusals by a guard with reason `blacklisted`. Default: as other refusals, \
             except `type` and `message`, which are about limits.",
        ),
        optional(
            "retry_after",
            Flag,
            "Sends `Retry-After` with refusals. Default: true.",
        ),
        optional(
            "correlation",
            Text("X-Correlation-ID"),
            "Header with the correlation id. Default: `X-Correlation-ID`.",
        ),
        optional(
            "names",
            Word(&NAMES),
            "`hidden`: clients see numbers instead of the names of policies, limits and bands, in the \
             order written. Default: `shown`.",
        ),
        optional(
            "rls",
            Word(&RLS),
            "Responses over `grpc` to which Envoy adds the headers of `headers`. Envoy can also \
             create `X-RateLimit` headers itself, from the status of each descriptor. Default: \
             `refused`.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the `respond` of a limit.
pub(crate) static REFUSAL: FieldTable = FieldTable {
    what: "refusal",
    fields: &[STATUS, TYPE, MESSAGE, CONTENT_TYPE, BODY],
    exactly_one: &[],
};

const STATUS: FieldRow = optional(
    "status",
    Whole(400, 599),
    "Status code of a refusal. Default: 429.",
);

const TYPE: FieldRow = optional(
    "type",
    Text("https://example.com/errors/rate-limit"),
    "Value of `{type}` if a limit is exceeded: a URI. Default: the registered one, \
             `…#quota-exceeded`.",
);

const MESSAGE: FieldRow = optional(
    "message",
    Text("Slow down"),
    "Text of `{message}` and `{detail}` if a limit is exceeded; may contain placeholders. \
             Default: a sentence.",
);

const CONTENT_TYPE: FieldRow = optional(
    "content_type",
    Text("application/json"),
    "Content type of a refusal; values in the body are escaped for it. Default: \
             `application/problem+json`.",
);

const BODY: FieldRow = optional(
    "body",
    Text(r#"{"error":"{title}","retry":{retry_after}}"#),
    "Body of a refusal: text with placeholders. Default: a problem document (RFC 9457).",
);
