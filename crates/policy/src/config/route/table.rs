//! Every field of `routes`.

use crate::config::fields::{PLACE, TEXTS, optional, required};
use crate::config::table::FieldTable;
use crate::config::table::Shape::{self, Either, Flag, List, Map, Pairs, Text, Whole, Word};
use crate::config::words::{BALANCE, EJECT, HOST_HEADER, HTTP2, REFUND, UNLIMITED};
use crate::route::Route;

/// The fields of a route.
pub(in crate::config) static ROUTE: FieldTable = FieldTable {
    what: "route",
    fields: &[
        required("id", Text("orders"), "Its name, unique among routes."),
        optional(
            "enabled",
            Flag,
            "Whether any request takes it; true unless told.",
        ),
        optional(
            "match",
            Either(&[Map(&PLACE), List(&Map(&PLACE))]),
            "Which requests take it: any one of these; every request where absent.",
        ),
        required(
            "upstreams",
            Either(&[UPSTREAM_SHAPE, List(&UPSTREAM_SHAPE)]),
            "Where requests go: one URL or several, such as `http://127.0.0.1:9001`.",
        ),
        optional(
            "tls",
            Map(&UPSTREAM_TLS),
            "Own authorities and certificates, for `https://`.",
        ),
        optional(
            "balance",
            Word(&BALANCE),
            "Which of several upstreams is asked; `round-robin` unless told.",
        ),
        optional(
            "health",
            Map(&HEALTH),
            "How upstreams are looked after between requests; not at all unless told.",
        ),
        optional(
            "eject",
            Either(&[Word(&EJECT), Map(&EJECTION)]),
            "When an upstream that fails requests is left alone; `off` for never.",
        ),
        optional("timeouts", Map(&TIMEOUTS), "How long to wait for what."),
        optional(
            "connections",
            Map(&CONNECTIONS),
            "How many connections each upstream may have, and how many requests may wait for one.",
        ),
        optional(
            "policy",
            TEXTS,
            "The policy that its requests must pass, or several, decided in one step; `none` for no limit; the first policy unless told.",
        ),
        optional(
            "refund",
            Word(&REFUND),
            "Whether a request that never reached an upstream is given its cost back; `never` unless told.",
        ),
        optional(
            "retries",
            Whole(0, RETRIES_MAX),
            "How often a request is tried again, where that is safe; 1 unless told.",
        ),
        optional(
            "body_bytes",
            Either(&[Text("10MiB"), Whole(0, u64::MAX), Word(&UNLIMITED)]),
            "How large the body of a request may be; 10MiB unless told.",
        ),
        optional(
            "min_upload_rate",
            Either(&[Text("240"), Whole(0, u64::MAX)]),
            "Bytes of a request's body that must come in a second, on average, after `timeouts.upload_grace`; 0 for any rate. Default: 240.",
        ),
        optional(
            "host",
            Word(&HOST_HEADER),
            "Which Host the upstream is told: the client's or its own; `keep` unless told.",
        ),
        optional(
            "strip_prefix",
            Text("/api"),
            "What is taken from the beginning of a path, by whole segments.",
        ),
        optional(
            "request_headers",
            Map(&REWRITE),
            "What is changed in the head of a request.",
        ),
        optional(
            "response_headers",
            Map(&REWRITE),
            "What is changed in the head of a response.",
        ),
        optional(
            "pass_headers",
            TEXTS,
            "Headers such as `X-HTTP-Method-Override` that untrusted clients may send to the upstream. Default: none.",
        ),
        optional(
            "upgrades",
            TEXTS,
            "To what a connection may be upgraded, [] for nothing; `websocket` unless told.",
        ),
        optional(
            "messages",
            Either(&[Text("per-message"), Map(&MESSAGES)]),
            "Limits what clients send on a WebSocket: the policy that each message must pass, or a map with bounds. Default: not limited.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of limits on the messages that clients send on a WebSocket.
pub(in crate::config) static MESSAGES: FieldTable = FieldTable {
    what: "`messages`",
    fields: &[
        optional(
            "policy",
            Text("per-message"),
            "The policy that each message must pass. Default: none.",
        ),
        optional(
            "message_bytes",
            Either(&[Text("10MiB"), Whole(0, u64::MAX), Word(&UNLIMITED)]),
            "Largest message, all its frames together. Default: 10MiB.",
        ),
        optional(
            "bytes",
            Either(&[Text("10MiB/s burst 100MiB"), Word(&UNLIMITED)]),
            "Bytes per connection. Default: 10MiB/s burst 100MiB.",
        ),
        optional(
            "frames",
            Either(&[Text("1000/s burst 10000"), Word(&UNLIMITED)]),
            "Control and continuation frames per connection. Default: 1000/s burst 10000.",
        ),
    ],
    exactly_one: &[],
};

const UPSTREAM_SHAPE: Shape = Either(&[Text("http://127.0.0.1:9001"), Map(&UPSTREAM)]);

/// The fields of an upstream with more settings than a URL.
pub(in crate::config) static UPSTREAM: FieldTable = FieldTable {
    what: "`upstreams`",
    fields: &[
        required(
            "url",
            Text("http://127.0.0.1:9001"),
            "Where it is: http, https, or h2c for HTTP/2 without TLS.",
        ),
        optional(
            "weight",
            Whole(1, WEIGHT_MAX),
            "How much of the traffic it takes, compared with others; 1 unless told.",
        ),
        optional(
            "http2",
            Either(&[Flag, Word(&HTTP2)]),
            "Whether HTTP/2 is spoken over TLS; `auto`, as the upstream chooses, unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The TLS fields for a route's upstreams.
pub(in crate::config) static UPSTREAM_TLS: FieldTable = FieldTable {
    what: "`routes.tls`",
    fields: &[
        optional(
            "ca",
            Text("/etc/tidegate/upstream-ca.pem"),
            "Who may have signed the upstream's certificate, a PEM file; the system's own unless told.",
        ),
        optional(
            "server_name",
            Text("orders.internal"),
            "The name that its certificate must be for; the host of the URL unless told.",
        ),
        optional(
            "cert",
            Text("/etc/tidegate/upstream-cert.pem"),
            "The certificate chain to show to the upstream, a PEM file.",
        ),
        optional(
            "key",
            Text("/etc/tidegate/upstream-key.pem"),
            "Its private key, a PEM file.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of health checks of upstreams.
pub(in crate::config) static HEALTH: FieldTable = FieldTable {
    what: "`health`",
    fields: &[
        required(
            "path",
            Text("/healthz"),
            "What is asked for; 200 to 399 is a good answer.",
        ),
        optional(
            "interval",
            Text("5s"),
            "From one question to the next; 5s unless told.",
        ),
        optional(
            "timeout",
            Text("1s"),
            "How long an answer may take; 1s unless told.",
        ),
        optional(
            "healthy",
            Whole(1, ANSWERS_MAX),
            "After how many good answers in a row it is fit again; 2 unless told.",
        ),
        optional(
            "unhealthy",
            Whole(1, ANSWERS_MAX),
            "After how many bad answers in a row it no longer is; 3 unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the ejection of failing upstreams.
pub(in crate::config) static EJECTION: FieldTable = FieldTable {
    what: "`eject`",
    fields: &[
        optional(
            "failures",
            Whole(1, FAILURES_MAX),
            "After how many failures in a row; 5 unless told.",
        ),
        optional("for", Text("10s"), "For how long; 10s unless told."),
    ],
    exactly_one: &[],
};

/// The fields of timeouts.
pub(in crate::config) static TIMEOUTS: FieldTable = FieldTable {
    what: "`timeouts`",
    fields: &[
        optional(
            "connect",
            Text("2s"),
            "Until there is a connection, TLS included; 2s unless told.",
        ),
        optional(
            "response",
            Text("60s"),
            "Until the head of the response is there; 60s unless told.",
        ),
        optional(
            "idle",
            Text("60s"),
            "Between two pieces of a body or of an upgraded connection; 60s unless told.",
        ),
        optional(
            "upload_grace",
            Text("10s"),
            "Time that a request's body has on top of `min_upload_rate`. Default: 10s.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of connection limits of an upstream.
pub(in crate::config) static CONNECTIONS: FieldTable = FieldTable {
    what: "`connections`",
    fields: &[
        optional(
            "max",
            Whole(1, CONNECTIONS_MAX),
            "Connections to one upstream, upgraded ones included; over HTTP/2 all requests share one. Default: 1024.",
        ),
        optional(
            "max_waiting",
            Whole(0, CONNECTIONS_MAX),
            "Requests that may wait for a connection, for up to `timeouts.connect`. Default: 20000.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of changes to the headers of a message.
pub(in crate::config) static REWRITE: FieldTable = FieldTable {
    what: "change of headers",
    fields: &[
        optional(
            "set",
            Pairs,
            "Headers that take the place of all others of their name.",
        ),
        optional("add", Pairs, "Headers that come beside those there are."),
        optional("remove", TEXTS, "Names of headers that go."),
    ],
    exactly_one: &[],
};

/// The maximum number of upstreams of a route.
pub(in crate::config) const UPSTREAMS_MAX: usize = Route::UPSTREAMS_MAX;

/// The largest weight of an upstream.
pub(in crate::config) const WEIGHT_MAX: u64 = 1_000;

/// The maximum number of connections to an upstream, and of requests that wait for one.
pub(in crate::config) const CONNECTIONS_MAX: u64 = 1_000_000;

/// The maximum number of retries.
pub(in crate::config) const RETRIES_MAX: u64 = 5;

/// The maximum number of consecutive health check results that a change of health may require.
pub(in crate::config) const ANSWERS_MAX: u64 = 100;

/// The maximum number of consecutive failures before an ejection.
pub(in crate::config) const FAILURES_MAX: u64 = 10_000;

/// The maximum number of headers that are set, added or removed in a message.
pub(in crate::config) const HEADERS_MAX: usize = 64;

/// The maximum number of protocols that a connection may be upgraded to.
pub(in crate::config) const UPGRADES_MAX: usize = 8;

/// The maximum number of policies that a route may list.
pub(in crate::config) const CARRIED_MAX: usize = 8;
