//! Every field of the language, defined once. The reader rejects fields that are not in a table, and
//! the schema is generated from the tables. Large sections have a separate module, and a few sections have
//! their table in the file of their reader.

pub(crate) mod client;
pub(crate) mod plans;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod sources;
pub(crate) mod store;
#[cfg(test)]
mod tests;
pub(crate) mod tls;

use crate::language::table::FieldRow;
use crate::language::table::FieldTable;
use crate::language::table::Shape::{self, Either, Flag, List, Map, Pairs, Text, Whole, Word};
use crate::language::table::{TEXTS, optional, required};
use crate::language::words::OF;
use crate::language::words::{
    ALGORITHM, ALIGN, CHARGE, COMBINE, EVALUATE, MISSING, MODE, ON_CHANGE, ON_FAILURE, ON_REFUSAL,
    PATHS, WEEK_START,
};
use crate::tables::respond::{REFUSAL, RESPOND};
use crate::tables::tls::SERVER_TLS;

/// The maximum number of routes in a configuration.
pub(crate) const ROUTES_MAX: usize = 10_000;

/// The maximum number of policies in a configuration.
pub const POLICIES_MAX: usize = 1_000;

/// The maximum number of limits in a policy: a request to the store numbers them in 16 bits.
pub const LIMITS_MAX: usize = 10_000;

/// The maximum number of bands of a limit: all of them are decided for every request.
pub const BANDS_MAX: usize = 16;

/// The maximum number of parts of a key.
pub const KEY_PARTS_MAX: usize = 8;

/// The maximum number of entries in a descriptor pattern.
pub(crate) const ENTRIES_MAX: usize = 16;

/// The fields of `listen`.
pub(crate) static LISTEN: FieldTable = FieldTable {
    what: "`listen`",
    fields: &[
        optional(
            "http",
            LISTEN_ON,
            "HTTP API: check requests and forward-auth. Default: 127.0.0.1:8080 if no other API has a \
             listener.",
        ),
        optional(
            "grpc",
            LISTEN_ON,
            "Envoy's rate limit service and gRPC health checks. Default: off.",
        ),
        optional(
            "gateway",
            LISTEN_ON,
            "Reverse proxy; `routes` sets its upstreams. Default: 127.0.0.1:8000 with `routes`, else \
             off.",
        ),
        optional(
            "admin",
            LISTEN_ON,
            "Health, metrics and the admin API; always on. Default: 127.0.0.1:8090, or a free port if \
             that one is taken, which is logged.",
        ),
        optional("resp", LISTEN_ON, "Redis protocol. Default: off."),
    ],
    exactly_one: &[],
};

const LISTEN_ON: Shape = Either(&[Text("127.0.0.1:8080"), Map(&LISTENER)]);

/// The fields of a listener with more settings than an address.
pub(crate) static LISTENER: FieldTable = FieldTable {
    what: "listener",
    fields: &[
        required(
            "address",
            Text("127.0.0.1:8080"),
            "IP address and port; `localhost:8080` is `127.0.0.1:8080`, and `:8080` is every address, \
             IPv4 and IPv6. Or a unix socket: `unix:PATH` or `unix:PATH?mode=660`.",
        ),
        optional("tls", Map(&SERVER_TLS), "TLS settings. Default: no TLS."),
        optional(
            "token",
            Text("${TOKEN}"),
            "Bearer token that callers must send. Prefer `token_file` or a variable. Default: none.",
        ),
        optional(
            "token_file",
            Text("/run/secrets/token"),
            "File that holds `token`.",
        ),
        optional(
            "connections_per_address",
            Whole(1, CONNECTIONS_MAX),
            "Maximum number of connections of one client address; IPv6 counts by network. Trusted \
             proxies may have nine tenths of the listener's. Default: a tenth of the listener's, at \
             least 100.",
        ),
        optional(
            "max_connection_age",
            Text("30m"),
            "Age at which a connection is closed, so that clients connect to new instances. HTTP/2 \
             clients get GOAWAY, HTTP/1 clients `Connection: close`; requests in flight finish. \
             Varied by up to 10%. 100ms to 365d, or `off`. Not for `resp`; WebSockets that were \
             upgraded from HTTP/1 stay open. Default: 24h for `grpc`, else off.",
        ),
        optional(
            "max_connection_age_grace",
            Text("1min"),
            "Time for requests in flight after `max_connection_age`; then the connection is closed. Up to 365d. Default: 1h.",
        ),
        optional(
            "paths",
            Word(&PATHS),
            "`gateway` only: `strict` rejects ambiguous paths such as `/a%2Fb` and `/a;b` with 400; \
             `lenient` forwards them. A reload can change it. Default: `strict`.",
        ),
    ],
    exactly_one: &[],
};

/// The highest value of `connections_per_address`.
pub(crate) const CONNECTIONS_MAX: u64 = 1_000_000;

/// A template for the names of keys.
pub(crate) const TEMPLATE: Shape = Text("ratelimit:{limit}:{key}");

/// A time zone.
const TIME_ZONE: Shape = Text("Europe/Berlin");

/// The point from which windows of the calendar are counted.
const ANCHOR: Shape = Either(&[Whole(1, 31), Text("2026-01-31T09:00")]);

/// The fields of a policy.
pub(crate) static POLICY: FieldTable = FieldTable {
    what: "policy",
    fields: &[
        required(
            "name",
            Text("api"),
            "Name in check requests and routes; unique.",
        ),
        optional(
            "evaluate",
            Word(&EVALUATE),
            "`all`: every limit that matches must allow. `first`: only the first enforced limit that \
             matches applies. `each`: every limit that matches must allow, and each counts \
             separately. Default: `all`.",
        ),
        optional(
            "domain",
            Text("edge"),
            "Domain in Envoy's rate limit service: up to 256 printable characters, unique among \
             domains and the names of policies without one. Default: the name.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "Charging of a cost that does not fit, for limits that do not set it. Default: `if-fits`.",
        ),
        optional(
            "reserve",
            Either(&[Text("60s"), Map(&RESERVE)]),
            "Enables reservations: their default lifetime, or a map. Default: off.",
        ),
        optional(
            "time_zone",
            TIME_ZONE,
            "Time zone of calendar windows, by its IANA name. Default: UTC.",
        ),
        optional(
            "week_start",
            Word(&WEEK_START),
            "First day of calendar weeks. Default: `monday`.",
        ),
        optional(
            "anchor",
            ANCHOR,
            "Start of calendar windows if it is not the calendar's: a day of the month, or a local date \
             and time from which windows recur. Not with `week_start`. Default: none.",
        ),
        optional(
            "respond",
            Map(&RESPOND),
            "Overrides of `respond` for this policy. Default: none.",
        ),
        required(
            "limits",
            List(&Map(&LIMIT)),
            "Limits, evaluated in this order.",
        ),
    ],
    exactly_one: &[],
};

/// The reservation fields of a policy.
pub(crate) static RESERVE: FieldTable = FieldTable {
    what: "`reserve`",
    fields: &[
        optional(
            "default_ttl",
            Text("60s"),
            "Lifetime of a reservation that sets none, 1ms to 1h. `reserve: 60s` is short for it. \
             Default: 60s.",
        ),
        optional(
            "max_ttl",
            Text("10min"),
            "Maximum lifetime, 1ms to 1h. Longer requests are shortened to it. Default: 10min, or \
             `default_ttl` if that is longer.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of a limit.
pub(crate) static LIMIT: FieldTable = FieldTable {
    what: "limit",
    fields: &[
        required(
            "name",
            Text("per-client"),
            "Limit name, unique in its policy; appears in decisions, metrics and bucket names.",
        ),
        optional(
            "enabled",
            Flag,
            "`false` is the same as `mode: off`. Default: true.",
        ),
        optional(
            "match",
            Either(&[Map(&CONDITION), List(&Map(&CONDITION))]),
            "Requests that the limit applies to: a condition, or a list of which one must match. \
             Default: every request.",
        ),
        optional(
            "key",
            TEXTS,
            "Bucket key: `ip`, `user`, `api-key`, `consumer`, `token`, `header:NAME`, `attr:NAME`, \
             `route`, `host`, `method`, `path`, `descriptor`, `descriptor:NAME`, `group`, a list of \
             these, or `global`. Requests with the same key share a bucket. Default: `global`.",
        ),
        optional(
            "missing",
            Word(&MISSING),
            "Behavior if the request has no such identity. Default: `address`.",
        ),
        optional(
            "rate",
            Either(&[Text("10/s burst 50"), Map(&PLANNED)]),
            "One band; or `unlimited`; or a map that names a plan.",
        ),
        optional(
            "burst",
            BURST,
            "With `rate` and `token-bucket`: units available at once. Default: the amount.",
        ),
        optional(
            "bands",
            List(&Either(&[Text("10/s burst 50"), Map(&BAND)])),
            "Several bands; all must allow.",
        ),
        optional(
            "concurrent",
            Whole(0, u64::MAX),
            "Requests in flight at once, in place of a rate. A request counts from its decision to its end.",
        ),
        optional(
            "hold",
            Text("30s"),
            "With `concurrent`: time that a request counts for a listener that does not see its end, 1ms to \
             1d. Required with `listen.http`, `grpc` or `resp`; else 30s without it.",
        ),
        optional(
            "unit",
            Text("tokens"),
            "What the limit counts: of a request's cost, the amount of this unit. Up to 32 lower-case \
             letters, digits, `-` and `_`. Default: `requests`.",
        ),
        optional(
            "algorithm",
            Word(&ALGORITHM),
            "Algorithm. Default: `token-bucket`.",
        ),
        optional(
            "align",
            Word(&ALIGN),
            "Start of a fixed window: `first-request`; `clock` for multiples of the period since the Unix \
             epoch; or `calendar` for hours, days and weeks of a time zone, which implies \
             `fixed-window`. Months, quarters and years always follow the calendar. Default: \
             `first-request`.",
        ),
        optional(
            "time_zone",
            TIME_ZONE,
            "Time zone of calendar windows, by its IANA name. Default: the policy's.",
        ),
        optional(
            "week_start",
            Word(&WEEK_START),
            "First day of calendar weeks. Default: the policy's.",
        ),
        optional(
            "anchor",
            ANCHOR,
            "Start of calendar windows if it is not the calendar's: a day of the month, or a local date \
             and time from which windows recur. Not with `week_start`. Default: the policy's.",
        ),
        optional(
            "mode",
            Word(&MODE),
            "`shadow`: the limit is decided and counted, and never refuses. `off`: it is skipped. \
             Default: `enforce`.",
        ),
        optional(
            "combine",
            Word(&COMBINE),
            "`any`: of the limits with `any` that match, one that allows is enough. Requires \
             `evaluate: each`. Ignored in shadow mode. Default: `all`.",
        ),
        optional(
            "replaces",
            TEXTS,
            "Names of limits of this policy that do not apply if this one does. Default: none.",
        ),
        optional(
            "on_refusal",
            Word(&ON_REFUSAL),
            "`wait` queues requests that do not fit. Default: `refuse`.",
        ),
        optional(
            "max_wait",
            Text("2s"),
            "Maximum wait, 1ms to 1h; required with `on_refusal: wait`. A request that would wait \
             longer is refused.",
        ),
        optional(
            "max_waiting",
            Whole(1, 1_000_000),
            "With `on_refusal: wait`: maximum number of queued requests of all clients in one \
             process. Default: 1000.",
        ),
        optional(
            "block",
            Text("5m"),
            "Time for which the first refusal blocks a client, 1ms to 365d; 0 is off. A plan can \
             override it. Default: 0.",
        ),
        optional(
            "on_failure",
            Word(&ON_FAILURE),
            "Behavior if the store is unavailable. Default: the store's.",
        ),
        optional(
            "on_change",
            Word(&ON_CHANGE),
            "Existing buckets when amounts, periods, bursts or overdraft change: `keep` the used \
             units, `scale` them, or `reset`. Default: `keep`.",
        ),
        optional(
            "respond",
            Map(&REFUSAL),
            "Responses to requests that this limit refuses. Default: the policy's.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "Charging of a cost that does not fit. `if-fits`: never. `always`: always, and the \
             request passes while anything is left. `even-if-refused`: if the request states its \
             cost; it is refused and charged. Default: the policy's.",
        ),
        optional(
            "overdraft",
            Whole(0, u64::MAX),
            "Units below empty that a cost that does not fit, or usage beyond a reservation, may \
             reach. Default: 0; with `charge: even-if-refused`, the amount of each band.",
        ),
        optional(
            "refundable",
            Flag,
            "Allows refunds: by `Limiter::refund_decision`, by a queued request that disconnects, or by \
             `refund: unreached` of a route. Costs some memory per bucket. Always on in a policy with \
             a limit that waits, and in a policy of a route with `refund: unreached`. Default: false.",
        ),
        optional(
            "warn",
            WARN,
            "Alert when this share of a band is used, 1% to 100%: once, by the request that reaches \
             it. Up to four rising shares as a list. Default: off.",
        ),
        optional(
            "template",
            TEMPLATE,
            "Template of its Redis keys with `layout: open`. Default: the store's, else by algorithm.",
        ),
    ],
    exactly_one: &["rate", "bands", "concurrent"],
};

/// The fields of a condition of a limit. All that are set must match.
pub(crate) static CONDITION: FieldTable = FieldTable {
    what: "condition",
    fields: &[
        PATH,
        METHOD,
        HOST,
        optional(
            "headers",
            Pairs,
            "Headers that must all match. Names and values are case-insensitive; `\"\"` is any value.",
        ),
        optional(
            "client",
            TEXTS,
            "Client addresses and networks; one must match.",
        ),
        optional(
            "attributes",
            Pairs,
            "Attributes that must all match. Case-sensitive.",
        ),
        optional(
            "descriptor",
            Either(&[List(&Either(&[Text(""), Pairs])), Pairs]),
            "Descriptor of the request: as a list, one with exactly these entries, in this order; as \
             a map, one that contains these entries. `*` in a value matches any characters, `\"\"` \
             any value.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of a condition of a route. All that are set must match.
pub(crate) static PLACE: FieldTable = FieldTable {
    what: "condition of a route",
    fields: &[PATH, METHOD, HOST],
    exactly_one: &[],
};

const PATH: FieldRow = optional(
    "path",
    Text("/api/*/users$"),
    "Path pattern: `*` is one segment, `**` any number. Matches as a prefix unless it ends in \
             `$`.",
);

const METHOD: FieldRow = optional(
    "method",
    TEXTS,
    "Methods; one must match. Case-insensitive.",
);

const HOST: FieldRow = optional(
    "host",
    TEXTS,
    "Hosts; one must match. Case-insensitive, port ignored. `*.example.com` is every host \
             under it, not `example.com` itself; quote it, because `*` starts an alias in YAML.",
);

/// The fields of a band with more settings than a rate.
pub(crate) static BAND: FieldTable = FieldTable {
    what: "band",
    fields: &[
        required("rate", Text("1000/h"), "An amount per period."),
        optional(
            "burst",
            BURST,
            "Units available at once. Default: the amount.",
        ),
        optional(
            "label",
            Text("hourly"),
            "Identifies the band. Default: its period.",
        ),
    ],
    exactly_one: &[],
};

/// The burst: the amount that may be used at once.
/// One used share of a band, or several.
const WARN: Shape = Either(&[Text("95%"), List(&Text("95%"))]);
const BURST: Shape = Whole(0, u64::MAX);

/// The fields of a rate that a plan sets.
pub(crate) static PLANNED: FieldTable = FieldTable {
    what: "rate from a plan",
    fields: &[
        required("plan", Text("events"), "Name of a source in `plans`."),
        required(
            "subject",
            Text("attr:project"),
            "Subject of the rate: `user`, `api-key`, `header:NAME`, `attr:NAME` or another key with a \
             single part.",
        ),
        optional(
            "of",
            Word(&OF),
            "`subject`: the subject's own rate. `group`: the quota of its group. Default: `subject`.",
        ),
        optional(
            "name",
            Text("monthly"),
            "Name of the rate, one of `rates` of the source. Default: the limit's `unit`; `requests` is the rate \
             that plans write as `rate`.",
        ),
        required(
            "default",
            Text("100/min"),
            "Rate of subjects unknown to the source: a rate, `unlimited` or `refuse`; or `skip`: the \
             limit does not apply to them.",
        ),
    ],
    exactly_one: &[],
};
