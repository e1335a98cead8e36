//! Every field of `client`.

use crate::language::table::FieldTable;
use crate::language::table::Shape::{self, Either, List, Map, Named, Text, Whole, Word};
use crate::language::table::{TEXTS, optional, required};
use crate::language::words::{ADDRESS, JWT_ALGORITHM, TRUST, VERIFIED_BY};

/// The fields of `client`.
pub(crate) static CLIENT: FieldTable = FieldTable {
    what: "`client`",
    fields: &[
        optional(
            "trusted_proxies",
            TEXTS,
            "Addresses and networks of proxies whose forwarding headers are trusted; `[]` for none. \
             Default: `[\"127.0.0.0/8\", \"::1\"]`.",
        ),
        optional(
            "ipv6_prefix",
            Whole(1, 128),
            "IPv6 prefix length that identifies a client. Default: 64.",
        ),
        optional(
            "address",
            Either(&[Word(&ADDRESS), List(&Word(&ADDRESS))]),
            "Headers of trusted proxies with the client address; the first one present is used. \
             Default: `[\"x-forwarded-for\", \"forwarded\", \"x-real-ip\"]`.",
        ),
        optional(
            "user",
            SOURCES,
            "Source of the user, or a list of sources; the first one with a value is used. Default: \
             none.",
        ),
        optional(
            "api_key",
            SOURCES,
            "Source of the API key; `[]` for none. Default: `{ \"header\": \"X-API-Key\" }`.",
        ),
        optional(
            "consumer",
            SOURCES,
            "Source of the attribute `consumer`, for `key: consumer`. Default: none.",
        ),
        optional(
            "token",
            SOURCES,
            "Source of the attribute `token`, for `key: token`. Default: none.",
        ),
        optional(
            "attributes",
            Named(&SOURCES),
            "Sources of other attributes, by name. Default: none.",
        ),
        optional(
            "cost",
            Either(&[Map(&COST), Named(&Map(&COST))]),
            "Header with the cost of a request; or a map of such headers by unit, for limits with `unit`. \
             Default: every request costs one request.",
        ),
        optional(
            "jwt",
            Map(&JWT),
            "JSON Web Tokens whose claims are identities: their location and verification. Default: \
             none.",
        ),
    ],
    exactly_one: &[],
};

/// The maximum number of attributes: each is looked up in every request.
pub(crate) const ATTRIBUTES_MAX: usize = 32;

/// The maximum number of sources of one identity.
pub(crate) const SOURCES_MAX: usize = 8;

/// The highest number of a path segment that can be an identity.
pub(crate) const SEGMENTS_MAX: u64 = 64;

/// The highest cost that a request may declare.
pub(crate) const COST_MAX: u64 = 1_000_000_000;

/// A source or a list of sources.
const SOURCES: Shape = Either(&[Map(&SOURCE), List(&Map(&SOURCE))]);

/// The fields of the source of an identity.
pub(crate) static SOURCE: FieldTable = FieldTable {
    what: "source",
    fields: &[
        optional("header", Text("X-User-Id"), "Header with the value."),
        optional(
            "cookie",
            Text("sid"),
            "Cookie with the value; its name is case-sensitive.",
        ),
        optional(
            "query",
            Text("key"),
            "Query parameter with the value; escapes are decoded.",
        ),
        optional(
            "segment",
            Whole(1, SEGMENTS_MAX),
            "Path segment with the value, counted from 1, in normalized form.",
        ),
        optional(
            "claim",
            Text("sub"),
            "Claim of the token of `client.jwt`: a string, an integer, `true` or `false`. \
             `realm.role` is the claim of that name, else `role` in the map `realm`.",
        ),
        optional(
            "trust",
            Word(&TRUST),
            "Senders whose header is trusted: only trusted `proxies`, or `anyone`. Default: `proxies` \
             for user and consumer, `anyone` for all others.",
        ),
    ],
    exactly_one: &["header", "cookie", "query", "segment", "claim"],
};

/// The fields of `client.cost`.
pub(crate) static COST: FieldTable = FieldTable {
    what: "`cost`",
    fields: &[
        required("header", Text("X-Cost"), "Header with the cost."),
        required(
            "max",
            Whole(1, COST_MAX),
            "Maximum cost. Higher values are lowered to it; values below 1 become 1.",
        ),
        optional(
            "default",
            Whole(1, COST_MAX),
            "Cost if the header is missing, repeated or malformed. Default: 1.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `client.jwt`.
pub(crate) static JWT: FieldTable = FieldTable {
    what: "`jwt`",
    fields: &[
        optional(
            "header",
            Text("Authorization"),
            "Header with the token, after `Bearer`. Default: `Authorization`.",
        ),
        optional(
            "cookie",
            Text("token"),
            "Cookie with the token, instead of a header.",
        ),
        optional(
            "secret",
            Text("${JWT_SECRET}"),
            "HMAC secret, used as written; Tidegate warns if it has fewer than 32 bytes. Prefer \
             `secret_file` or a variable.",
        ),
        optional(
            "secret_file",
            Text("/run/secrets/jwt"),
            "File that holds `secret`.",
        ),
        optional(
            "key_file",
            Text("/etc/tidegate/jwt.pem"),
            "PEM file with the public key that verifies tokens: RSA from 2048 bits, P-256, P-384 or \
             Ed25519.",
        ),
        optional(
            "jwks_file",
            Text("/etc/tidegate/jwks.json"),
            "JWK set file with the public keys that verify tokens; a token selects its key by `kid`.",
        ),
        optional(
            "verified_by",
            Word(&VERIFIED_BY),
            "`proxy`: the proxy in front verifies tokens. Claims are read without verification, and \
             only from trusted proxies.",
        ),
        optional(
            "algorithms",
            Either(&[Word(&JWT_ALGORITHM), List(&Word(&JWT_ALGORITHM))]),
            "Accepted signature algorithms. Default: all that fit the key.",
        ),
        optional("issuer", TEXTS, "Accepted issuers (`iss`). Default: any."),
        optional(
            "audience",
            TEXTS,
            "Accepted audiences (`aud`). Default: any.",
        ),
        optional(
            "leeway",
            Text("60s"),
            "Tolerated clock difference for `exp` and `nbf`, up to 1h. Default: 60s.",
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
