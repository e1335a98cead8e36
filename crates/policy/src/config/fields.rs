//! Every field of the language, told once: the reader refuses what is not here, and the schema
//! is made from it.

use super::respond::{REFUSAL, RESPOND};
use super::table::Field;
use super::table::Shape::{self, Either, Flag, List, Map, Named, Pairs, Share, Text, Whole, Word};
use super::table::Table;
use super::words::{
    ADDRESS, ALGORITHM, ALIGN, CHARGE, EVALUATE, JWT_ALGORITHM, LAYOUT, LOCAL_SHARE, MISSING, MODE,
    ON_FAILURE, STORE_MODE, TAG, TRUST, VERIFIED_BY,
};

/// The most policies in a configuration.
pub(super) const POLICIES_MAX: usize = 1_000;

/// The most limits in a policy: they are numbered in 16 bits on their way to a store.
pub(super) const LIMITS_MAX: usize = 10_000;

/// The most bands of a limit: all of them are decided for every request.
pub(super) const BANDS_MAX: usize = 16;

/// The most parts of a key.
pub(super) const KEY_PARTS_MAX: usize = 8;

/// The whole configuration.
pub(super) static CONFIG: Table = Table {
    what: "the configuration",
    fields: &[
        optional(
            "listen",
            Map(&LISTEN),
            "Where to listen: one address for each door.",
        ),
        optional(
            "store",
            Map(&STORE),
            "Where buckets live, and what to do without it.",
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
        required(
            "policies",
            List(&Map(&POLICY)),
            "A list of policies; the first answers where a request names none.",
        ),
    ],
    exactly_one: &[],
};

/// `listen`.
pub(super) static LISTEN: Table = Table {
    what: "`listen`",
    fields: &[
        optional("http", DOOR, "The HTTP API: checks and forward-auth."),
        optional("grpc", DOOR, "Envoy's rate limit service, and gRPC health."),
        optional("gateway", DOOR, "The reverse proxy."),
        optional(
            "admin",
            DOOR,
            "Health, metrics and administration; 127.0.0.1:8090 unless told.",
        ),
        optional("resp", DOOR, "The Redis protocol."),
    ],
    exactly_one: &[],
};

const DOOR: Shape = Either(&[Text("127.0.0.1:8080"), Map(&LISTENER)]);

/// A door with more than an address.
pub(super) static LISTENER: Table = Table {
    what: "listener",
    fields: &[
        required(
            "address",
            Text("127.0.0.1:8080"),
            "An IP address and a port.",
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
    ],
    exactly_one: &[],
};

/// The TLS of a door.
pub(super) static TLS: Table = Table {
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

/// `store`.
pub(super) static STORE: Table = Table {
    what: "`store`",
    fields: &[
        optional(
            "url",
            Text("redis://127.0.0.1:6379"),
            "`memory`, or the URL of Redis or Valkey; a comma between several means Cluster; `memory` unless told.",
        ),
        optional(
            "urls",
            List(&Text("redis://127.0.0.1:6379")),
            "Several URLs, in place of `url`: the nodes of a Cluster, or sentinels.",
        ),
        optional(
            "mode",
            Word(&STORE_MODE),
            "What stands at the addresses; `auto`, as the URL looks, unless told.",
        ),
        optional(
            "master",
            Text("mymaster"),
            "The name under which sentinels know the master, where the URL does not say it.",
        ),
        optional(
            "user",
            Text("tidegate"),
            "Who asks Redis, where the URL does not say it.",
        ),
        optional(
            "password",
            Text("${REDIS_PASSWORD}"),
            "The password for Redis; better kept in `password_file` or a variable.",
        ),
        optional(
            "password_file",
            Text("/run/secrets/redis"),
            "The file that holds `password`.",
        ),
        optional(
            "sentinel_user",
            Text("tidegate"),
            "Who asks the sentinels; as for the master unless told.",
        ),
        optional(
            "sentinel_password",
            Text("${SENTINEL_PASSWORD}"),
            "The password for the sentinels; as for the master unless told.",
        ),
        optional(
            "sentinel_password_file",
            Text("/run/secrets/sentinel"),
            "The file that holds `sentinel_password`.",
        ),
        optional(
            "tls",
            Map(&STORE_TLS),
            "Own authorities and certificates, for `rediss://`.",
        ),
        optional(
            "connections",
            Whole(1, CONNECTIONS_MAX),
            "How many connections to each node, all of which carry many calls at a time; 2 unless told.",
        ),
        optional(
            "connect_timeout",
            Text("1s"),
            "How long a connection may take to be there; 1s unless told.",
        ),
        optional(
            "timeout",
            Text("20ms"),
            "How long to wait for the store; 20ms unless told.",
        ),
        optional(
            "retries",
            Whole(0, RETRIES_MAX),
            "How often a call that Redis is known not to have executed is tried again; 1 unless told.",
        ),
        optional(
            "required_at_start",
            Flag,
            "Whether not to start while Redis is away; false unless told.",
        ),
        optional(
            "on_failure",
            Word(&ON_FAILURE),
            "What to do when the store does not answer in time; `local` unless told.",
        ),
        optional(
            "local_share",
            Either(&[Share, Word(&LOCAL_SHARE)]),
            "How much of the policy this instance may grant while the store is away; 0.5 unless told.",
        ),
        optional(
            "key_secret",
            Text("${KEY_SECRET}"),
            "Keys the hashes of identities; the same on all instances.",
        ),
        optional(
            "key_secret_file",
            Text("/run/secrets/key_secret"),
            "The file that holds `key_secret`.",
        ),
        optional(
            "max_keys",
            Whole(1, MAX_KEYS),
            "How many buckets the store in this process may hold; 1000000 unless told.",
        ),
        optional(
            "prefix",
            Text("tg:"),
            "What the names of keys in Redis begin with; `tg:` unless told.",
        ),
        optional(
            "tag",
            Word(&TAG),
            "Which part of a key is its hash tag in a Cluster; `subject` unless told.",
        ),
        optional(
            "layout",
            Word(&LAYOUT),
            "In what form buckets are kept in Redis; `packed` unless told.",
        ),
        optional(
            "template",
            TEMPLATE,
            "How keys are named with `layout: open`.",
        ),
        optional(
            "deny_cache",
            Whole(0, DENY_CACHE_MAX),
            "How many refused keys each instance remembers, 0 for none; 100000 unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The TLS of a store.
pub(super) static STORE_TLS: Table = Table {
    what: "`store.tls`",
    fields: &[
        optional(
            "ca_file",
            Text("/etc/tidegate/redis-ca.pem"),
            "Who may have signed the server's certificate, a PEM file; the system's own unless told.",
        ),
        optional(
            "cert_file",
            Text("/etc/tidegate/redis-cert.pem"),
            "The certificate chain to show to the server, a PEM file.",
        ),
        optional(
            "key_file",
            Text("/etc/tidegate/redis-key.pem"),
            "Its private key, a PEM file.",
        ),
    ],
    exactly_one: &[],
};

/// The most connections to a node.
pub(super) const CONNECTIONS_MAX: u64 = 64;

/// The most tries after the first.
pub(super) const RETRIES_MAX: u64 = 5;

/// The most refused keys to remember: about 100 bytes each.
pub(super) const DENY_CACHE_MAX: u64 = 10_000_000;

/// How keys are named.
const TEMPLATE: Shape = Text("ratelimit:{limit}:{key}");

/// The most buckets that a store in this process may be asked to hold.
pub(super) const MAX_KEYS: u64 = 1 << 32;

/// `client`.
pub(super) static CLIENT: Table = Table {
    what: "`client`",
    fields: &[
        optional(
            "trusted_proxies",
            TEXTS,
            "Whose forwarded headers count: addresses and networks; this machine's own unless told.",
        ),
        optional(
            "ipv6_prefix",
            Whole(1, 128),
            "How many leading bits of an IPv6 address tell clients apart; 64 unless told.",
        ),
        optional(
            "address",
            Either(&[Word(&ADDRESS), List(&Word(&ADDRESS))]),
            "Which headers of trusted proxies tell the client's address: the first that is there; all three unless told.",
        ),
        optional("user", SOURCES, "Where the user comes from."),
        optional(
            "api_key",
            SOURCES,
            "Where the API key comes from; the header X-API-Key unless told, [] for none.",
        ),
        optional(
            "consumer",
            SOURCES,
            "Where the consumer comes from, which is the attribute `consumer`.",
        ),
        optional(
            "token",
            SOURCES,
            "Where the token comes from, which is the attribute `token`.",
        ),
        optional(
            "attributes",
            Named(&SOURCES),
            "Where further attributes come from, by name.",
        ),
        optional("cost", Map(&COST), "Lets requests say how much they take."),
        optional(
            "jwt",
            Map(&JWT),
            "Where tokens are whose claims are identities, and how they are verified.",
        ),
    ],
    exactly_one: &[],
};

/// The most attributes: all of them are looked for in every request.
pub(super) const ATTRIBUTES_MAX: usize = 32;

/// The most sources of one identity.
pub(super) const SOURCES_MAX: usize = 8;

/// The last segment of a path that can be an identity.
pub(super) const SEGMENTS_MAX: u64 = 64;

/// The most that a request may say it takes.
pub(super) const COST_MAX: u64 = 1_000_000_000;

/// One source or a list of them.
const SOURCES: Shape = Either(&[Map(&SOURCE), List(&Map(&SOURCE))]);

/// Where an identity comes from.
pub(super) static SOURCE: Table = Table {
    what: "source",
    fields: &[
        optional("header", Text("X-User-Id"), "A header."),
        optional("cookie", Text("sid"), "A cookie."),
        optional("query", Text("key"), "A parameter of the query."),
        optional(
            "segment",
            Whole(1, SEGMENTS_MAX),
            "A segment of the path, counted from 1.",
        ),
        optional(
            "claim",
            Text("sub"),
            "A claim of the token that `client.jwt` describes; dots lead into it.",
        ),
        optional(
            "trust",
            Word(&TRUST),
            "Whose word the header is; that of `proxies` for user and consumer, that of `anyone` for all else, unless told.",
        ),
    ],
    exactly_one: &["header", "cookie", "query", "segment", "claim"],
};

/// `client.cost`.
pub(super) static COST: Table = Table {
    what: "`cost`",
    fields: &[
        required("header", Text("X-Cost"), "The header that says it."),
        required(
            "max",
            Whole(1, COST_MAX),
            "The most that a request may say; what is more counts as this much, what is less than 1 as 1.",
        ),
        optional(
            "default",
            Whole(1, COST_MAX),
            "Where the header is missing, repeated or malformed; 1 unless told.",
        ),
    ],
    exactly_one: &[],
};

/// `client.jwt`.
pub(super) static JWT: Table = Table {
    what: "`jwt`",
    fields: &[
        optional(
            "header",
            Text("Authorization"),
            "The header that carries the token, after `Bearer`; Authorization unless told.",
        ),
        optional("cookie", Text("token"), "The cookie that carries it."),
        optional(
            "secret",
            Text("${JWT_SECRET}"),
            "The secret that tokens are signed with; better kept in `secret_file` or a variable.",
        ),
        optional(
            "secret_file",
            Text("/run/secrets/jwt"),
            "The file that holds `secret`.",
        ),
        optional(
            "key_file",
            Text("/etc/tidegate/jwt.pem"),
            "The public key that verifies tokens, a PEM file: RSA, P-256, P-384 or Ed25519.",
        ),
        optional(
            "jwks_file",
            Text("/etc/tidegate/jwks.json"),
            "The public keys that verify tokens, a JWK set.",
        ),
        optional(
            "verified_by",
            Word(&VERIFIED_BY),
            "`proxy`: tokens are verified before they come here, and count only from trusted proxies.",
        ),
        optional(
            "algorithms",
            Either(&[Word(&JWT_ALGORITHM), List(&Word(&JWT_ALGORITHM))]),
            "How tokens may be signed; whatever fits the key unless told.",
        ),
        optional(
            "issuer",
            TEXTS,
            "Who may have issued it; anyone unless told.",
        ),
        optional(
            "audience",
            TEXTS,
            "For whom it may be; for anyone unless told.",
        ),
        optional(
            "leeway",
            Text("60s"),
            "By how much clocks may differ; 60s unless told.",
        ),
    ],
    exactly_one: &[
        "jwks_file",
        "key_file",
        "secret_file",
        "secret",
        "verified_by",
    ],
};

/// A policy.
pub(super) static POLICY: Table = Table {
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
            "`all`: every limit that matches must allow; `first`: the first that matches decides alone.",
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

/// A limit.
pub(super) static LIMIT: Table = Table {
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
            "Whose bucket: ip, user, api-key, consumer, token, header:NAME, attr:NAME, route, host, method, path, a list of them, or global.",
        ),
        optional(
            "missing",
            Word(&MISSING),
            "What to do where the identity is absent; `address` unless told.",
        ),
        optional("rate", Text("10/s burst 50"), "How much: one band."),
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
            "`shadow` decides and counts, and never refuses.",
        ),
        optional(
            "on_failure",
            Word(&ON_FAILURE),
            "What to do when the store does not answer in time; as the store says unless told.",
        ),
        optional(
            "respond",
            Map(&REFUSAL),
            "What its refusals look like, where they differ from the policy's.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "`always` takes a cost that does not fit all the same.",
        ),
        optional(
            "overdraft",
            Whole(0, u64::MAX),
            "How far below empty `charge: always` may go.",
        ),
        optional(
            "refundable",
            Flag,
            "Whether charges may be given back; false unless told.",
        ),
        optional(
            "template",
            TEMPLATE,
            "How its keys are named in Redis with `layout: open`; as the store says unless told.",
        ),
    ],
    exactly_one: &["rate", "bands"],
};

/// One way in which a limit applies: all of it must hold.
pub(super) static CONDITION: Table = Table {
    what: "condition",
    fields: &[
        optional(
            "path",
            Text("/api/*/users$"),
            "Segments; `*` is one, `**` any number; a prefix unless it ends in `$`.",
        ),
        optional("method", TEXTS, "Any of these methods."),
        optional(
            "host",
            TEXTS,
            "Any of these hosts; `*.example.com` is every host under it.",
        ),
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
    ],
    exactly_one: &[],
};

/// A band with more than a rate.
pub(super) static BAND: Table = Table {
    what: "band",
    fields: &[
        required("rate", Text("1000/h"), "An amount per period."),
        optional(
            "burst",
            Whole(0, u64::MAX),
            "How much may come at once; the amount unless told.",
        ),
        optional(
            "label",
            Text("hourly"),
            "Identifies the band, in place of its period.",
        ),
    ],
    exactly_one: &[],
};

/// One text or a list of them.
const TEXTS: Shape = Either(&[Text(""), List(&Text(""))]);

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        about,
        required: true,
    }
}

pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field {
        name,
        shape,
        about,
        required: false,
    }
}
