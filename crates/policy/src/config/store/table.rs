//! Every field of `store`.

use crate::config::fields::{TEMPLATE, optional};
use crate::config::table::FieldTable;
use crate::config::table::Shape::{Either, Flag, List, Map, Share, Text, Whole, Word};
use crate::config::words::{KEY_NAMES, LAYOUT, LOCAL_SHARE, ON_FAILURE, STORE_MODE, TAG};

/// The fields of `store`.
pub(in crate::config) static STORE: FieldTable = FieldTable {
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
            "key_names",
            Word(&KEY_NAMES),
            "How API keys and other secrets stand in the names of keys with `layout: open`: as a hash, or as they are sent, where another system knows its keys by these names. Default: `hashed`; `literal` with FluxGate's rules among `sources`.",
        ),
        optional(
            "deny_cache",
            Whole(0, DENY_CACHE_MAX),
            "How many refused keys each instance remembers, 0 for none; 100000 unless told.",
        ),
    ],
    exactly_one: &[],
};

/// The TLS fields of a store.
pub(in crate::config) static STORE_TLS: FieldTable = FieldTable {
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

/// The maximum number of connections to a node.
pub(in crate::config) const CONNECTIONS_MAX: u64 = 64;

/// The maximum number of retries.
pub(in crate::config) const RETRIES_MAX: u64 = 5;

/// The maximum number of entries in the deny cache: about 100 bytes each.
pub(in crate::config) const DENY_CACHE_MAX: u64 = 10_000_000;

/// The maximum number of buckets of a store in memory.
pub(in crate::config) const MAX_KEYS: u64 = 1 << 32;
