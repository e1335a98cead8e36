//! Every field of `client`.

use crate::config::fields::{TEXTS, optional, required};
use crate::config::table::FieldTable;
use crate::config::table::Shape::{self, Either, List, Map, Named, Text, Whole, Word};
use crate::config::words::{ADDRESS, JWT_ALGORITHM, TRUST, VERIFIED_BY};

/// The fields of `client`.
pub(in crate::config) static CLIENT: FieldTable = FieldTable {
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

/// The maximum number of attributes: each is looked up in every request.
pub(in crate::config) const ATTRIBUTES_MAX: usize = 32;

/// The maximum number of sources of one identity.
pub(in crate::config) const SOURCES_MAX: usize = 8;

/// The highest number of a path segment that can be an identity.
pub(in crate::config) const SEGMENTS_MAX: u64 = 64;

/// The highest cost that a request may declare.
pub(in crate::config) const COST_MAX: u64 = 1_000_000_000;

/// A source or a list of sources.
const SOURCES: Shape = Either(&[Map(&SOURCE), List(&Map(&SOURCE))]);

/// The fields of the source of an identity.
pub(in crate::config) static SOURCE: FieldTable = FieldTable {
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

/// The fields of `client.cost`.
pub(in crate::config) static COST: FieldTable = FieldTable {
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

/// The fields of `client.jwt`.
pub(in crate::config) static JWT: FieldTable = FieldTable {
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
