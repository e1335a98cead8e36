//! Every field of the language, defined once. The reader rejects fields that are not in a table, and
//! the schema is generated from the tables. The sections `store`, `client`, `respond` and `routes` have
//! their tables in their own modules.

use super::addresses::ADDRESSES;
use super::admin::ADMIN;
use super::alerts::ALERTS;
use super::client::CLIENT;
use super::guard::GUARD;
use super::planned::PLANNED;
use super::plans::PLANS;
use super::respond::{REFUSAL, RESPOND};
use super::route::ROUTE;
use super::sources::SOURCE;
use super::statsd::STATSD;
use super::store::STORE;
use super::table::FieldRow;
use super::table::FieldTable;
use super::table::Shape::{self, Either, Flag, List, Map, Pairs, Text, Whole, Word};
use super::traces::{LOGS, TRACES};
use super::words::{
    ALGORITHM, ALIGN, CHARGE, EVALUATE, MISSING, MODE, ON_CHANGE, ON_FAILURE, ON_REFUSAL, PATHS,
    PLAIN_MODE,
};

/// The maximum number of routes in a configuration.
pub(super) const ROUTES_MAX: usize = 10_000;

/// The maximum number of policies in a configuration.
pub(crate) const POLICIES_MAX: usize = 1_000;

/// The maximum number of limits in a policy: a request to the store numbers them in 16 bits.
pub(crate) const LIMITS_MAX: usize = 10_000;

/// The maximum number of bands of a limit: all of them are decided for every request.
pub(crate) const BANDS_MAX: usize = 16;

/// The maximum number of parts of a key.
pub(crate) const KEY_PARTS_MAX: usize = 8;

/// The maximum number of entries in a descriptor pattern.
pub(super) const ENTRIES_MAX: usize = 16;

/// The fields of the whole configuration.
pub(super) static CONFIG: FieldTable = FieldTable {
    what: "the configuration",
    fields: &[
        optional(
            "mode",
            Word(&PLAIN_MODE),
            "`shadow` decides and counts everything and refuses nobody, whatever limits and guards say. Default: `enforce`.",
        ),
        optional(
            "listen",
            Map(&LISTEN),
            "Where to listen: one address for each door.",
        ),
        optional(
            "store",
            Either(&[Text("redis://127.0.0.1:6379"), Map(&STORE)]),
            "Where buckets live, and what to do without it: a URL or `memory`, or a map.",
        ),
        optional(
            "client",
            Map(&CLIENT),
            "Who asks: address, user, API key, attributes and cost.",
        ),
        optional(
            "respond",
            Map(&RESPOND),
            "What clients are told; a policy may say otherwise.",
        ),
        optional(
            "guards",
            List(&Map(&GUARD)),
            "Who may not pass at all, and whom no limit applies to: asked before any limit, exemptions first.",
        ),
        optional(
            "routes",
            List(&Map(&ROUTE)),
            "Where the gateway sends requests: the first that matches is taken.",
        ),
        optional(
            "plans",
            List(&Map(&PLANS)),
            "Where rates come from that are not written here: how much each subject has.",
        ),
        optional(
            "sources",
            List(&Map(&SOURCE)),
            "Where more policies, guards and routes come from: they come after those of the file, in the order of the list.",
        ),
        optional(
            "addresses",
            Map(&ADDRESSES),
            "Counts requests by address, and bans who asks too often.",
        ),
        optional(
            "alerts",
            Map(&ALERTS),
            "Whom to tell when something needs a person.",
        ),
        optional(
            "traces",
            Map(&TRACES),
            "Where spans of OpenTelemetry go, and of how many requests.",
        ),
        optional(
            "statsd",
            Map(&STATSD),
            "Statsd server that statistics of limits are sent to.",
        ),
        optional("logs", Map(&LOGS), "What the log hears of single requests."),
        optional(
            "admin",
            Map(&ADMIN),
            "Who may look at this server over its admin API, and change what it does; nobody unless told.",
        ),
        required(
            "policies",
            List(&Map(&POLICY)),
            "A list of policies; the first answers where a request names none.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `listen`.
pub(super) static LISTEN: FieldTable = FieldTable {
    what: "`listen`",
    fields: &[
        optional("http", DOOR, "The HTTP API: checks and forward-auth."),
        optional("grpc", DOOR, "Envoy's rate limit service, and gRPC health."),
        optional("gateway", DOOR, "The reverse proxy."),
        optional(
            "admin",
            DOOR,
            "Health, metrics and administration. Default: 127.0.0.1:8090, or a free port if that one is taken.",
        ),
        optional("resp", DOOR, "The Redis protocol."),
    ],
    exactly_one: &[],
};

const DOOR: Shape = Either(&[Text("127.0.0.1:8080"), Map(&LISTENER)]);

/// The fields of a listener with more settings than an address.
pub(super) static LISTENER: FieldTable = FieldTable {
    what: "listener",
    fields: &[
        required(
            "address",
            Text("127.0.0.1:8080"),
            "An IP address and a port; `localhost:8080` is `127.0.0.1:8080`, and `:8080` is every address. Or a unix socket: `unix:PATH` or `unix:PATH?mode=660`.",
        ),
        optional("tls", Map(&TLS), "Speak TLS."),
        optional(
            "token",
            Text("${TOKEN}"),
            "What callers must present; better kept in `token_file` or a variable.",
        ),
        optional(
            "token_file",
            Text("/run/secrets/token"),
            "The file that holds the token.",
        ),
        optional(
            "connections_per_address",
            Whole(1, CONNECTIONS_MAX),
            "Most connections of one client address; IPv6 counts by network. Trusted proxies may have nine tenths of the listener's. Default: a tenth of the listener's, at least 100.",
        ),
        optional(
            "max_connection_age",
            Text("30m"),
            "Age at which a connection is asked to close, so that clients connect to new instances: requests in flight finish first. Varied by up to 10%. Not for `resp`. 100ms to 365d, or `off`. Default: 24h for `grpc`, else off.",
        ),
        optional(
            "max_connection_age_grace",
            Text("1min"),
            "Time for requests in flight after `max_connection_age`; then the connection is closed. Up to 365d. Default: 1h.",
        ),
        optional(
            "paths",
            Word(&PATHS),
            "Of the gateway: `strict` refuses paths that programs read in different ways, such as `/a%2Fb` and `/a;b`; `lenient` passes them on. Default: strict.",
        ),
    ],
    exactly_one: &[],
};

/// The highest value of `connections_per_address`.
pub(super) const CONNECTIONS_MAX: u64 = 1_000_000;

/// The TLS fields of a listener.
pub(super) static TLS: FieldTable = FieldTable {
    what: "`tls`",
    fields: &[
        required(
            "cert",
            Text("/etc/tidegate/cert.pem"),
            "The certificate chain, a PEM file.",
        ),
        required(
            "key",
            Text("/etc/tidegate/key.pem"),
            "Its private key, a PEM file.",
        ),
        optional(
            "client_ca",
            Text("/etc/tidegate/ca.pem"),
            "Callers must show a certificate that one of these signed, a PEM file.",
        ),
    ],
    exactly_one: &[],
};

/// A template for the names of keys.
pub(super) const TEMPLATE: Shape = Text("ratelimit:{limit}:{key}");

/// The fields of a policy.
pub(super) static POLICY: FieldTable = FieldTable {
    what: "policy",
    fields: &[
        required(
            "name",
            Text("api"),
            "Its name, by which requests ask for it.",
        ),
        optional(
            "evaluate",
            Word(&EVALUATE),
            "`all`: every limit that matches must allow; `first`: the first that matches decides alone; `each`: all must allow, and each counts by itself.",
        ),
        optional(
            "domain",
            Text("edge"),
            "What Envoy's rate limit service calls it; its name unless told.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "When a cost that does not fit is charged, for all its limits that do not set it. Default: `if-fits`.",
        ),
        optional(
            "reserve",
            Either(&[Text("60s"), Map(&RESERVE)]),
            "It takes reservations: how long one lives that does not say so, or a map.",
        ),
        optional(
            "respond",
            Map(&RESPOND),
            "What clients are told, where it differs from `respond` for all.",
        ),
        required(
            "limits",
            List(&Map(&LIMIT)),
            "A list of limits, in the order in which they are looked at.",
        ),
    ],
    exactly_one: &[],
};

/// The reservation fields of a policy.
pub(super) static RESERVE: FieldTable = FieldTable {
    what: "`reserve`",
    fields: &[
        optional(
            "default_ttl",
            Text("60s"),
            "How long a reservation lives that does not say so, 1ms to 1h; 60s unless told.",
        ),
        optional(
            "max_ttl",
            Text("10min"),
            "How long any may live, 1ms to 1h; 10min unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of a limit.
pub(super) static LIMIT: FieldTable = FieldTable {
    what: "limit",
    fields: &[
        required(
            "name",
            Text("per-client"),
            "Its name, unique in its policy.",
        ),
        optional(
            "enabled",
            Flag,
            "Whether it counts at all; true unless told.",
        ),
        optional(
            "match",
            Either(&[Map(&CONDITION), List(&Map(&CONDITION))]),
            "Whom it applies to: any one of these; every request where absent.",
        ),
        optional(
            "key",
            TEXTS,
            "Whose bucket: ip, user, api-key, consumer, token, header:NAME, attr:NAME, route, host, method, path, descriptor, descriptor:NAME, group, a list of them, or global.",
        ),
        optional(
            "missing",
            Word(&MISSING),
            "What to do where the identity is absent; `address` unless told.",
        ),
        optional(
            "rate",
            Either(&[Text("10/s burst 50"), Map(&PLANNED)]),
            "How much: one band; or `unlimited`; or a map that says which plan tells.",
        ),
        optional(
            "burst",
            BURST,
            "With `rate`: how much may come at once. Default: the amount.",
        ),
        optional(
            "bands",
            List(&Either(&[Text("10/s burst 50"), Map(&BAND)])),
            "How much: several bands, all of which must allow.",
        ),
        optional(
            "algorithm",
            Word(&ALGORITHM),
            "How it counts; `token-bucket` unless told.",
        ),
        optional(
            "align",
            Word(&ALIGN),
            "Where a fixed window starts; `first-request` unless told.",
        ),
        optional(
            "mode",
            Word(&MODE),
            "`shadow` decides and counts, and never refuses; of several limits with `quota`, one that allows is enough.",
        ),
        optional(
            "replaces",
            TEXTS,
            "The limits of its policy, by name, that do not apply where this one does.",
        ),
        optional(
            "on_refusal",
            Word(&ON_REFUSAL),
            "`wait` lets requests that do not fit wait for their turn; `refuse` unless told.",
        ),
        optional(
            "max_wait",
            Text("2s"),
            "How long `on_refusal: wait` lets a request wait, 1ms to 1h; who would wait longer is refused.",
        ),
        optional(
            "max_waiting",
            Whole(1, 1_000_000),
            "How many may wait at once, in one process; 1000 unless told.",
        ),
        optional(
            "block",
            Text("5m"),
            "For how long the first refusal closes it to whoever was refused, 1ms to 365d; 0, which is none, unless told.",
        ),
        optional(
            "on_failure",
            Word(&ON_FAILURE),
            "What to do when the store does not answer in time; as the store says unless told.",
        ),
        optional(
            "on_change",
            Word(&ON_CHANGE),
            "What becomes of its buckets when its amounts, periods, bursts or overdraft change: what was used stays used, stays the same share, or is forgotten; `keep` unless told.",
        ),
        optional(
            "respond",
            Map(&REFUSAL),
            "What its refusals look like, where they differ from the policy's.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "When a cost that does not fit is charged: never (`if-fits`); always, and the request passes while anything is left (`always`); or if the request states its cost, which is then refused and charged (`even-if-refused`). Default: the policy's.",
        ),
        optional(
            "overdraft",
            Whole(0, u64::MAX),
            "How far below empty charges of a cost that does not fit may go, and what is used over a reservation. Default: 0; with `charge: even-if-refused`, the amount of each band.",
        ),
        optional(
            "refundable",
            Flag,
            "Whether charges may be given back; false unless told.",
        ),
        optional(
            "warn",
            Text("95%"),
            "Tells of it when this much of a band is used; nothing is told unless told.",
        ),
        optional(
            "template",
            TEMPLATE,
            "How its keys are named in Redis with `layout: open`; as the store says unless told.",
        ),
    ],
    exactly_one: &["rate", "bands"],
};

/// The fields of a condition of a limit. All that are set must match.
pub(super) static CONDITION: FieldTable = FieldTable {
    what: "condition",
    fields: &[
        PATH,
        METHOD,
        HOST,
        optional(
            "headers",
            Pairs,
            "All of these headers; names and values ignore case, and \"\" is any value.",
        ),
        optional(
            "client",
            TEXTS,
            "The client's address is or lies in any of these.",
        ),
        optional("attributes", Pairs, "All of these attributes."),
        optional(
            "descriptor",
            Either(&[List(&Either(&[Text(""), Pairs])), Pairs]),
            "A descriptor of exactly these entries, in this order; or, as a map, with these among its entries. `*` in a value is anything, \"\" any value.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of a condition of a route. All that are set must match.
pub(super) static PLACE: FieldTable = FieldTable {
    what: "condition of a route",
    fields: &[PATH, METHOD, HOST],
    exactly_one: &[],
};

const PATH: FieldRow = optional(
    "path",
    Text("/api/*/users$"),
    "Segments; `*` is one, `**` any number; a prefix unless it ends in `$`.",
);

const METHOD: FieldRow = optional("method", TEXTS, "Any of these methods.");

const HOST: FieldRow = optional(
    "host",
    TEXTS,
    "Any of these hosts; `*.example.com` is every host under it.",
);

/// The fields of a band with more settings than a rate.
pub(super) static BAND: FieldTable = FieldTable {
    what: "band",
    fields: &[
        required("rate", Text("1000/h"), "An amount per period."),
        optional(
            "burst",
            BURST,
            "How much may come at once. Default: the amount.",
        ),
        optional(
            "label",
            Text("hourly"),
            "Identifies the band, in place of its period.",
        ),
    ],
    exactly_one: &[],
};

/// The burst: the amount that may be used at once.
const BURST: Shape = Whole(0, u64::MAX);

/// A text or a list of texts.
pub(super) const TEXTS: Shape = Either(&[Text(""), List(&Text(""))]);

pub(crate) const fn required(name: &'static str, shape: Shape, about: &'static str) -> FieldRow {
    FieldRow {
        name,
        shape,
        about,
        required: true,
    }
}

pub(crate) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> FieldRow {
    FieldRow {
        name,
        shape,
        about,
        required: false,
    }
}
