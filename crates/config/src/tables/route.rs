//! Every field of `routes`.

use crate::language::table::FieldTable;
use crate::language::table::Shape::{self, Either, Flag, List, Map, Pairs, Text, Whole, Word};
use crate::language::table::{TEXTS, optional, required};
use crate::language::words::{BALANCE, EJECT, HOST_HEADER, HTTP2, MODE, REFUND, UNLIMITED};
use crate::tables::PLACE;
use crate::tables::tls::CLIENT_TLS;
use tidegate_policy::route::Route;

/// The fields of a route.
pub(crate) static ROUTE: FieldTable = FieldTable {
    what: "route",
    fields: &[
        required(
            "name",
            Text("orders"),
            "Name for `key: route`, decisions and metrics; unique.",
        ),
        optional(
            "mode",
            Word(&MODE),
            "`shadow`: its limits, including those of `messages`, are decided and counted, and refuse \
             no request. `off`: its requests take the next route that matches. Default: `enforce`.",
        ),
        optional(
            "match",
            Either(&[Map(&PLACE), List(&Map(&PLACE))]),
            "Condition with `path`, `method` and `host` only, or a list of which one must match. \
             Default: every request.",
        ),
        required(
            "upstreams",
            Either(&[UPSTREAM_SHAPE, List(&UPSTREAM_SHAPE)]),
            "Upstreams of its requests: one or several, such as `http://127.0.0.1:9001`.",
        ),
        optional(
            "tls",
            Map(&CLIENT_TLS),
            "Certificate authorities and client certificate for `https://`. Default: the authorities \
             of the system.",
        ),
        optional(
            "balance",
            Word(&BALANCE),
            "Load balancing by weight: in turn, or by the fewest requests in flight. Default: \
             `round-robin`.",
        ),
        optional(
            "health",
            Map(&HEALTH),
            "Health checks of the upstreams. Default: none.",
        ),
        optional(
            "eject",
            Either(&[Word(&EJECT), Map(&EJECTION)]),
            "Ejection of upstreams that fail requests; `off` disables it. Default: `{ \"failures\": \
             5, \"for\": \"10s\" }`.",
        ),
        optional(
            "timeouts",
            Map(&TIMEOUTS),
            "Timeouts of requests to the upstreams.",
        ),
        optional(
            "connections",
            Map(&CONNECTIONS),
            "Connections to each upstream, and requests that may wait for one.",
        ),
        optional(
            "policy",
            TEXTS,
            "Policy for its requests, or several, decided atomically; `none` for no limit. \
             Default: the first policy.",
        ),
        optional(
            "refund",
            Word(&REFUND),
            "`unreached`: refunds a request that never reached an upstream. Default: `never`.",
        ),
        optional(
            "retries",
            Whole(0, RETRIES_MAX),
            "Retries of a request that is safe to repeat. Default: 1.",
        ),
        optional(
            "body_bytes",
            Either(&[Text("10MiB"), Whole(0, u64::MAX), Word(&UNLIMITED)]),
            "Maximum size of a request body. Default: 10MiB.",
        ),
        optional(
            "min_upload_rate",
            Either(&[Text("240"), Whole(0, u64::MAX)]),
            "Minimum upload rate of a request body in bytes per second, on average, after \
             `timeouts.upload_grace`; 0 for none. Slower uploads get 408. Default: 240.",
        ),
        optional(
            "host",
            Word(&HOST_HEADER),
            "`Host` for the upstream: `keep` sends the client's, `upstream` that of the URL. Default: \
             `keep`.",
        ),
        optional(
            "strip_prefix",
            Text("/api"),
            "Prefix to remove from the path, by whole segments: with `/api`, `/api/orders` becomes \
             `/orders`, and `/apis` is unchanged. Default: none.",
        ),
        optional(
            "request_headers",
            Map(&REWRITE),
            "Changes to request headers. Default: none.",
        ),
        optional(
            "response_headers",
            Map(&REWRITE),
            "Changes to response headers. Default: none.",
        ),
        optional(
            "pass_headers",
            TEXTS,
            "Headers such as `X-HTTP-Method-Override` that the gateway otherwise removes from \
             requests of untrusted clients. Default: none.",
        ),
        optional(
            "upgrades",
            TEXTS,
            "Protocols that a connection may be upgraded to; `[]` for none; never `h2c`. Default: \
             `websocket`.",
        ),
        optional(
            "messages",
            Either(&[Text("per-message"), Map(&MESSAGES)]),
            "Limits for messages of clients on a WebSocket: a policy for each message, or a map with \
             bounds. Default: no limits.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of limits on the messages that clients send on a WebSocket.
pub(crate) static MESSAGES: FieldTable = FieldTable {
    what: "`messages`",
    fields: &[
        optional(
            "policy",
            Text("per-message"),
            "Policy for each message. Default: none.",
        ),
        optional(
            "message_bytes",
            Either(&[Text("10MiB"), Whole(0, u64::MAX), Word(&UNLIMITED)]),
            "Maximum size of a message, all its frames together, up to 1GiB. Default: 10MiB.",
        ),
        optional(
            "bytes",
            Either(&[Text("10MiB/s burst 100MiB"), Word(&UNLIMITED)]),
            "Bytes per connection, frame headers included: a size per period with an optional burst. \
             Without a burst, the burst is `message_bytes` or one period's amount, whichever is \
             larger. Default: `10MiB/s burst 100MiB`.",
        ),
        optional(
            "frames",
            Either(&[Text("1000/s burst 10000"), Word(&UNLIMITED)]),
            "Control frames (ping, pong, close) and continuation frames per connection. Default: \
             `1000/s burst 10000`.",
        ),
    ],
    exactly_one: &[],
};

const UPSTREAM_SHAPE: Shape = Either(&[Text("http://127.0.0.1:9001"), Map(&UPSTREAM)]);

/// The fields of an upstream with more settings than a URL.
pub(crate) static UPSTREAM: FieldTable = FieldTable {
    what: "`upstreams`",
    fields: &[
        required(
            "url",
            Text("http://127.0.0.1:9001"),
            "URL of the upstream: `http`, `https`, or `h2c` for HTTP/2 without TLS.",
        ),
        optional(
            "weight",
            Whole(1, WEIGHT_MAX),
            "Share of the traffic, relative to the other upstreams. Default: 1.",
        ),
        optional(
            "http2",
            Either(&[Flag, Word(&HTTP2)]),
            "Only with `https://`: `true` for HTTP/2 only, `false` for HTTP/1.1 only, `auto` as the \
             upstream chooses. Default: `auto`.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of health checks of upstreams.
pub(crate) static HEALTH: FieldTable = FieldTable {
    what: "`health`",
    fields: &[
        required(
            "path",
            Text("/healthz"),
            "Path of the health check; 200 to 399 is healthy.",
        ),
        optional(
            "interval",
            Text("5s"),
            "Time between two checks, 100ms to 1h. Default: 5s.",
        ),
        optional(
            "timeout",
            Text("1s"),
            "Response timeout, 1ms to 1h, at most `interval`. Default: 1s.",
        ),
        optional(
            "healthy",
            Whole(1, ANSWERS_MAX),
            "Consecutive successes that mark an upstream healthy. Default: 2.",
        ),
        optional(
            "unhealthy",
            Whole(1, ANSWERS_MAX),
            "Consecutive failures that mark an upstream unhealthy. Default: 3.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the ejection of failing upstreams.
pub(crate) static EJECTION: FieldTable = FieldTable {
    what: "`eject`",
    fields: &[
        optional(
            "failures",
            Whole(1, FAILURES_MAX),
            "Consecutive failures before ejection. Default: 5.",
        ),
        optional(
            "for",
            Text("10s"),
            "Ejection time, 1ms to 1h. Default: 10s.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of timeouts.
pub(crate) static TIMEOUTS: FieldTable = FieldTable {
    what: "`timeouts`",
    fields: &[
        optional(
            "connect",
            Text("2s"),
            "Connect timeout, including TLS, 1ms to 1min. Default: 2s.",
        ),
        optional(
            "response",
            Text("60s"),
            "Timeout for the response headers, counted from the last part of the request body, 1ms to \
             1d. Default: 60s.",
        ),
        optional(
            "idle",
            Text("60s"),
            "Timeout between two parts of a body, or of an upgraded connection, 1ms to 1d. Default: \
             60s.",
        ),
        optional(
            "upload_grace",
            Text("10s"),
            "Time that a request body gets in addition to `min_upload_rate`, 1ms to 1h. Default: 10s.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of connection limits of an upstream.
pub(crate) static CONNECTIONS: FieldTable = FieldTable {
    what: "`connections`",
    fields: &[
        optional(
            "max",
            Whole(1, CONNECTIONS_MAX),
            "Connections to each upstream, upgraded ones included; over HTTP/2 all requests share \
             one. Default: 1024.",
        ),
        optional(
            "max_waiting",
            Whole(0, CONNECTIONS_MAX),
            "Requests that may wait for a connection to an upstream, each for up to \
             `timeouts.connect`; more get 503. Default: 20000.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of changes to the headers of a message.
pub(crate) static REWRITE: FieldTable = FieldTable {
    what: "change of headers",
    fields: &[
        optional(
            "set",
            Pairs,
            "Headers to set; all headers with the same name are replaced.",
        ),
        optional("add", Pairs, "Headers to add; existing headers stay."),
        optional(
            "remove",
            TEXTS,
            "Names of headers to remove, all with the same name.",
        ),
    ],
    exactly_one: &[],
};

/// The maximum number of upstreams of a route.
pub(crate) const UPSTREAMS_MAX: usize = Route::UPSTREAMS_MAX;

/// The largest weight of an upstream.
pub(crate) const WEIGHT_MAX: u64 = 1_000;

/// The maximum number of connections to an upstream, and of requests that wait for one.
pub(crate) const CONNECTIONS_MAX: u64 = 1_000_000;

/// The maximum number of retries.
pub(crate) const RETRIES_MAX: u64 = 5;

/// The maximum number of consecutive health check results that a change of health may require.
pub(crate) const ANSWERS_MAX: u64 = 100;

/// The maximum number of consecutive failures before an ejection.
pub(crate) const FAILURES_MAX: u64 = 10_000;

/// The maximum number of headers that are set, added or removed in a message.
pub(crate) const HEADERS_MAX: usize = 64;

/// The maximum number of protocols that a connection may be upgraded to.
pub(crate) const UPGRADES_MAX: usize = 8;

/// The maximum number of policies that a route may list.
pub(crate) const CARRIED_MAX: usize = 8;
