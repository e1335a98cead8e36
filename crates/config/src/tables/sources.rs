//! Every field of sources.
//!
//! Reader, suggestions for misspelt fields and JSON schema use these rows. A kind of source is a field whose
//! value is a map; exactly one of them must be set.

use crate::language::table::Shape::{Flag, List, Map, Pairs, Text, Word};
use crate::language::table::{FieldRow, FieldTable};
use crate::language::table::{optional, required};
use crate::language::words::{CHARGE, EVALUATE, FORMAT};
use crate::tables::tls::CLIENT_TLS;

/// The fields of a source.
pub(crate) static SOURCE: FieldTable = FieldTable {
    what: "config source",
    fields: &[
        optional(
            "name",
            Text("limits"),
            "Name in logs, metrics and messages; unique, and not `file`. Default: the name of its \
             location field, such as `keeper`.",
        ),
        optional(
            "required",
            Flag,
            "`false` serves without the source until it responds. Default: true.",
        ),
        optional(
            "refresh",
            Text("30s"),
            "Time between two reads, 100ms to 24h; for `xds`, the maximum delay between two attempts \
             to connect. Default: 30s; 5s for `redis` and for `mongodb` with `format: tidegate`.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "Maximum duration of one read, 1ms to 10min. Default: 5s; 300s for a keeper.",
        ),
        optional("keeper", Map(&KEEPER), "Key in a keeper."),
        optional("http", Map(&HTTP), "Document at a URL."),
        optional(
            "redis",
            Map(&REDIS),
            "Redis hash with one document per field, writable; or FluxGate rule sets.",
        ),
        optional(
            "mongodb",
            Map(&MONGODB),
            "MongoDB documents, writable; or a collection of FluxGate rules.",
        ),
        optional(
            "etcd",
            Map(&ETCD),
            "etcd keys with one document each, writable.",
        ),
        optional(
            "xds",
            Map(&XDS),
            "xDS server that sends the configuration of envoyproxy/ratelimit.",
        ),
    ],
    exactly_one: &["keeper", "http", "redis", "mongodb", "etcd", "xds"],
};

/// The fields of a keeper.
pub(crate) static KEEPER: FieldTable = FieldTable {
    what: "`sources.keeper`",
    fields: &[
        required(
            "url",
            Text("https://keeper.internal:8080"),
            "URL, `http://` or `https://`.",
        ),
        required("key", Text("ratelimits"), "Key of the document."),
        optional(
            "path",
            Text("admin/get"),
            "Path between the URL and the key. Default: `admin/get`.",
        ),
        optional(
            "user",
            Text("admin"),
            "User name for authentication; sent only with a password. Default: `admin`.",
        ),
        optional(
            "password",
            Text("${KEEPER_PASSWORD}"),
            "Password for authentication. Prefer `password_file` or a variable. Default: none.",
        ),
        optional(
            "password_file",
            Text("/run/secrets/keeper"),
            "File that holds the password.",
        ),
        optional(
            "format",
            Word(&FORMAT),
            "Format of the document. Default: `traefik-plugin`.",
        ),
        optional(
            "policy",
            Text("traefik"),
            "Name of the policy made from the document. Default: `traefik`.",
        ),
        optional(
            "fallback",
            Text("{\"limits\": []}"),
            "Document to use until the keeper is reached for the first time. Default: none.",
        ),
        optional(
            "fallback_file",
            Text("/etc/tidegate/ratelimits.json"),
            "File that holds the fallback document.",
        ),
        TLS,
    ],
    exactly_one: &[],
};

/// The fields of a document at a URL.
pub(crate) static HTTP: FieldTable = FieldTable {
    what: "`sources.http`",
    fields: &[
        required(
            "url",
            Text("https://config.internal/policies.yaml"),
            "URL, `http://` or `https://`.",
        ),
        TOKEN,
        TOKEN_FILE,
        optional(
            "format",
            Word(&FORMAT),
            "Format of the document. Default: `tidegate`.",
        ),
        TLS,
    ],
    exactly_one: &[],
};

/// The fields of a hash in Redis.
pub(crate) static REDIS: FieldTable = FieldTable {
    what: "`sources.redis`",
    fields: &[
        REDIS_URL,
        REDIS_URL_FILE,
        optional(
            "key",
            Text("tidegate:policies"),
            "Key of the hash. Default: `tidegate:policies`.",
        ),
        RULESETS,
        CHANNEL,
        WRITABLE,
    ],
    exactly_one: &[],
};

/// The fields of a range of keys in etcd.
pub(crate) static ETCD: FieldTable = FieldTable {
    what: "`sources.etcd`",
    fields: &[
        ENDPOINTS,
        optional(
            "prefix",
            Text("/tidegate/"),
            "Key prefix. Default: `/tidegate/`.",
        ),
        USER,
        PASSWORD,
        PASSWORD_FILE,
        TLS,
        WRITABLE,
    ],
    exactly_one: &[],
};

/// The fields of an xDS server.
pub(crate) static XDS: FieldTable = FieldTable {
    what: "`sources.xds`",
    fields: &[
        required(
            "url",
            Text("envoy-gateway:18001"),
            "Host and port, or a URL: `https://` for TLS, `http://` without.",
        ),
        optional(
            "node_id",
            Text("envoy-ratelimit"),
            "Node id, by which the server finds the configuration. Default: `default`.",
        ),
        optional(
            "node_cluster",
            Text("edge"),
            "Cluster of the node. Default: none.",
        ),
        optional(
            "node_metadata",
            Pairs,
            "Metadata of the node, texts by name. Default: none.",
        ),
        optional(
            "headers",
            Pairs,
            "Additional headers of the call, for example a token. Default: none.",
        ),
        optional(
            "evaluate",
            Word(&EVALUATE),
            "Evaluation of several limits that match one call: `all`, or `each`, which counts every \
             limit separately. Default: `all`.",
        ),
        optional(
            "charge",
            Word(&CHARGE),
            "Charging of calls that do not fit: `even-if-refused`, or `if-fits`, which never charges \
             them. Default: `even-if-refused`.",
        ),
        optional(
            "merge_domains",
            Flag,
            "`true` lets several resources describe the same domain. Default: false.",
        ),
        optional(
            "quota_mode",
            Flag,
            "`true` makes every limit a quota, unless it is in shadow mode. Default: false.",
        ),
        TLS,
    ],
    exactly_one: &[],
};

pub(crate) const TLS: FieldRow = optional(
    "tls",
    Map(&CLIENT_TLS),
    "Certificate authorities and client certificate for `https://`. Default: the authorities \
     of the system.",
);

pub(crate) const WRITABLE: FieldRow = optional(
    "writable",
    Flag,
    "`false` makes the source read-only for the admin API. Default: true.",
);

pub(crate) const REDIS_URL: FieldRow = optional(
    "url",
    Text("redis://127.0.0.1:6379"),
    "URL of Redis, as in `store.url`. Default: the store's.",
);

pub(crate) const REDIS_URL_FILE: FieldRow = optional(
    "url_file",
    Text("/run/secrets/redis"),
    "File that holds the URL.",
);

pub(crate) const ENDPOINTS: FieldRow = required(
    "endpoints",
    List(&Text("http://127.0.0.1:2379")),
    "URLs of up to 16 etcd members, `http://` or `https://`, tried in turn, starting with the \
             last that responded, each with its share of `timeout`.",
);

pub(crate) const USER: FieldRow = optional(
    "user",
    Text("tidegate"),
    "User name, if etcd requires authentication. Default: none.",
);

pub(crate) const PASSWORD: FieldRow = optional(
    "password",
    Text("${ETCD_PASSWORD}"),
    "Password of the user. Prefer `password_file` or a variable.",
);

pub(crate) const PASSWORD_FILE: FieldRow = optional(
    "password_file",
    Text("/run/secrets/etcd"),
    "File that holds the password.",
);

pub(crate) const TOKEN: FieldRow = optional(
    "token",
    Text("${TOKEN}"),
    "Token that is sent as `Authorization: Bearer`. Prefer `token_file` or a variable. \
             Default: none.",
);

pub(crate) const TOKEN_FILE: FieldRow = optional(
    "token_file",
    Text("/run/secrets/token"),
    "File that holds `token`.",
);

/// The prefix of the keys of rule sets.
pub(crate) const RULESETS: FieldRow = optional(
    "rulesets",
    Text("fluxgate"),
    "Reads FluxGate rule sets instead of a Tidegate hash: their key prefix, before `:ruleset:`.",
);

/// The channel that announces changes to rule sets.
pub(crate) const CHANNEL: FieldRow = optional(
    "channel",
    Text("fluxgate:rule-reload"),
    "Channel that announces changes of `rulesets`. Default: their prefix and `:rule-reload`.",
);

/// The fields of a collection of rules, or of Tidegate's own documents.
pub(crate) static MONGODB: FieldTable = FieldTable {
    what: "`sources.mongodb`",
    fields: &[
        optional(
            "url",
            Text("mongodb://127.0.0.1:27017"),
            "MongoDB URL, `mongodb://` or `mongodb+srv://`. Prefer `url_file` or a variable.",
        ),
        optional(
            "url_file",
            Text("/run/secrets/mongodb"),
            "File that holds the URL.",
        ),
        required("database", Text("limits"), "Database name."),
        optional(
            "collection",
            Text("tidegate_policies"),
            "Collection. Default: `tidegate_policies`; `rate_limit_rules` with `format: fluxgate`.",
        ),
        optional(
            "format",
            Word(&FORMAT),
            "`tidegate` for writable documents; `fluxgate` for one FluxGate rule per document. \
             Default: `tidegate`.",
        ),
        WRITABLE,
    ],
    exactly_one: &["url", "url_file"],
};

/// The field that selects a collection of Tidegate's own documents instead of foreign collections.
pub(crate) const DOCUMENTS: &str = "documents";
