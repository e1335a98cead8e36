//! Every field of sources.

use super::rules::{CHANNEL, MONGODB, RULESETS};
use crate::config::fields::{optional, required};
use crate::config::table::Shape::{Flag, List, Map, Text, Word};
use crate::config::table::{FieldRow, FieldTable};
use crate::config::words::FORMAT;

/// The fields of a source.
pub(in crate::config) static SOURCE: FieldTable = FieldTable {
    what: "source of policy",
    fields: &[
        optional(
            "name",
            Text("limits"),
            "What log, metrics and messages call it; the word for where it is unless told.",
        ),
        optional(
            "required",
            Flag,
            "`false` serves without it until it answers; unless told, nothing is served before.",
        ),
        optional("keeper", Map(&KEEPER), "A key of a keeper."),
        optional("http", Map(&HTTP), "A document at a URL."),
        optional(
            "redis",
            Map(&REDIS),
            "A hash of Redis with a document in each field, which can be written to; or rule sets of FluxGate.",
        ),
        optional(
            "mongodb",
            Map(&MONGODB),
            "Documents in MongoDB, which can be written to; or a collection of FluxGate's rules.",
        ),
        optional(
            "etcd",
            Map(&ETCD),
            "Keys of etcd with a document in each, which can be written to.",
        ),
    ],
    exactly_one: &["keeper", "http", "redis", "mongodb", "etcd"],
};

/// The fields of a keeper.
pub(super) static KEEPER: FieldTable = FieldTable {
    what: "`sources.keeper`",
    fields: &[
        required(
            "url",
            Text("https://keeper.internal:8080"),
            "`http://` or `https://`.",
        ),
        required("key", Text("ratelimits"), "The key of the document."),
        optional(
            "endpoint",
            Text("admin/get"),
            "What stands between the URL and the key; `admin/get` unless told.",
        ),
        optional("user", Text("admin"), "Who asks; `admin` unless told."),
        optional(
            "password",
            Text("${KEEPER_PASSWORD}"),
            "The password of who asks; better kept in `password_file` or a variable. Without one, nobody is named.",
        ),
        optional(
            "password_file",
            Text("/run/secrets/keeper"),
            "The file that holds the password.",
        ),
        optional(
            "format",
            Word(&FORMAT),
            "Whose language the document is in; `traefik-plugin` unless told.",
        ),
        optional(
            "policy",
            Text("traefik"),
            "What the policy is called that the document becomes; `traefik` unless told.",
        ),
        optional(
            "fallback",
            Text("{\"limits\": []}"),
            "The document to serve while the keeper has never been reached.",
        ),
        optional(
            "fallback_file",
            Text("/etc/tidegate/ratelimits.json"),
            "The file that holds it.",
        ),
        TLS,
        REFRESH,
        optional(
            "timeout",
            Text("10s"),
            "How long an answer may take, 1ms to 10min; 300s unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of a document at a URL.
pub(super) static HTTP: FieldTable = FieldTable {
    what: "`sources.http`",
    fields: &[
        required(
            "url",
            Text("https://config.internal/policies.yaml"),
            "`http://` or `https://`.",
        ),
        TOKEN,
        TOKEN_FILE,
        optional(
            "format",
            Word(&FORMAT),
            "Whose language the document is in; `tidegate` unless told.",
        ),
        TLS,
        REFRESH,
        TIMEOUT,
    ],
    exactly_one: &[],
};

/// The fields of a hash in Redis.
pub(super) static REDIS: FieldTable = FieldTable {
    what: "`sources.redis`",
    fields: &[
        REDIS_URL,
        REDIS_URL_FILE,
        optional(
            "key",
            Text("tidegate:policies"),
            "The hash; `tidegate:policies` unless told.",
        ),
        RULESETS,
        CHANNEL,
        WRITABLE,
        REFRESH_TOLD,
        TIMEOUT,
    ],
    exactly_one: &[],
};

/// The fields of a range of keys in etcd.
pub(super) static ETCD: FieldTable = FieldTable {
    what: "`sources.etcd`",
    fields: &[
        ENDPOINTS,
        optional(
            "prefix",
            Text("/tidegate/"),
            "What its keys begin with; `/tidegate/` unless told.",
        ),
        USER,
        PASSWORD,
        PASSWORD_FILE,
        TLS,
        WRITABLE,
        REFRESH,
        TIMEOUT,
    ],
    exactly_one: &[],
};

/// The TLS fields of a source that is read over HTTP.
pub(super) static SOURCE_TLS: FieldTable = FieldTable {
    what: "`sources.tls`",
    fields: &[
        optional(
            "ca",
            Text("/etc/tidegate/keeper-ca.pem"),
            "Who may have signed its certificate, a PEM file; the system's own authorities unless told.",
        ),
        optional(
            "server_name",
            Text("keeper.internal"),
            "The name that its certificate must be for; the host of the URL unless told.",
        ),
        optional(
            "cert",
            Text("/etc/tidegate/cert.pem"),
            "The certificate chain to show to it, a PEM file.",
        ),
        optional(
            "key",
            Text("/etc/tidegate/key.pem"),
            "Its private key, a PEM file.",
        ),
    ],
    exactly_one: &[],
};

pub(in crate::config) const TLS: FieldRow = optional(
    "tls",
    Map(&SOURCE_TLS),
    "Own authorities and certificates, for `https://`.",
);

pub(super) const REFRESH: FieldRow = optional(
    "refresh",
    Text("30s"),
    "How often it is asked, 100ms to 24h; 30s unless told.",
);

const REFRESH_TOLD: FieldRow = optional(
    "refresh",
    Text("5s"),
    "How often it is asked even where nothing was said, 100ms to 24h; 5s unless told.",
);

pub(super) const TIMEOUT: FieldRow = optional(
    "timeout",
    Text("5s"),
    "How long an answer may take, 1ms to 10min; 5s unless told.",
);

pub(in crate::config) const WRITABLE: FieldRow = optional(
    "writable",
    Flag,
    "`false` has it read only; it can be written to through this server unless told.",
);

pub(in crate::config) const REDIS_URL: FieldRow = optional(
    "url",
    Text("redis://127.0.0.1:6379"),
    "Which Redis, as in `store.url`; the store's unless told.",
);

pub(in crate::config) const REDIS_URL_FILE: FieldRow = optional(
    "url_file",
    Text("/run/secrets/redis"),
    "The file that holds the URL.",
);

pub(in crate::config) const ENDPOINTS: FieldRow = required(
    "endpoints",
    List(&Text("http://127.0.0.1:2379")),
    "Its members, `http://` or `https://`: they are asked in turn until one answers.",
);

pub(in crate::config) const USER: FieldRow = optional(
    "user",
    Text("tidegate"),
    "Who asks, where it wants to know.",
);

pub(in crate::config) const PASSWORD: FieldRow = optional(
    "password",
    Text("${ETCD_PASSWORD}"),
    "The password of who asks; better kept in `password_file` or a variable.",
);

pub(in crate::config) const PASSWORD_FILE: FieldRow = optional(
    "password_file",
    Text("/run/secrets/etcd"),
    "The file that holds the password.",
);

pub(in crate::config) const TOKEN: FieldRow = optional(
    "token",
    Text("${TOKEN}"),
    "Presented as a bearer token; better kept in `token_file` or a variable.",
);

pub(in crate::config) const TOKEN_FILE: FieldRow = optional(
    "token_file",
    Text("/run/secrets/token"),
    "The file that holds the token.",
);
