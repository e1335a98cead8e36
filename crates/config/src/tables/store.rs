//! Every field of `store`.

use crate::language::table::FieldTable;
use crate::language::table::Shape::{Either, Flag, List, Map, Share, Text, Whole, Word};
use crate::language::table::{optional, required};
use crate::language::words::{KEY_NAMES, LAYOUT, LOCAL_SHARE, ON_FAILURE, TAG, TOPOLOGY};
use crate::tables::TEMPLATE;
use crate::tables::tls::CLIENT_TLS;

/// The fields of `store`.
pub(crate) static STORE: FieldTable = FieldTable {
    what: "`store`",
    fields: &[
        optional(
            "url",
            Either(&[
                Text("redis://127.0.0.1:6379"),
                List(&Text("redis://127.0.0.1:6379")),
            ]),
            "`memory`, or the URL of Redis or Valkey; several, as a list or separated by commas, \
             for a Cluster or for sentinels. Default: `memory`.",
        ),
        optional(
            "redis",
            Map(&REDIS),
            "Redis settings: connections, credentials, TLS and key layout.",
        ),
        optional(
            "timeout",
            Text("20ms"),
            "Maximum wait for the store per decision, up to 1min. Default: 20ms.",
        ),
        optional(
            "on_failure",
            Word(&ON_FAILURE),
            "Behavior of limits if the store is unavailable; a limit can override it. Default: \
             `local`.",
        ),
        optional(
            "local_share",
            Either(&[Share, Word(&LOCAL_SHARE)]),
            "Share of each limit that one instance grants while the store is unavailable; `auto` is 1 \
             / number of instances. Default: 0.5.",
        ),
        optional(
            "key_secret",
            Text("${KEY_SECRET}"),
            "Secret key of the hashes of secrets and long values in bucket names; must be the same on \
             all instances that share a store. Default: none.",
        ),
        optional(
            "key_secret_file",
            Text("/run/secrets/key_secret"),
            "File that holds `key_secret`.",
        ),
        optional(
            "max_keys",
            Whole(1, MAX_KEYS),
            "Maximum number of buckets in memory. The table takes 32 bytes for each, rounded up to a \
             power of two; buckets that do not fit a word (sliding windows, logs) take up to 240 \
             bytes more. Default: 1000000.",
        ),
        optional(
            "snapshot",
            Map(&SNAPSHOT),
            "File that keeps the buckets in memory over a restart. Default: none.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `store.snapshot`.
pub(crate) static SNAPSHOT: FieldTable = FieldTable {
    what: "`store.snapshot`",
    fields: &[
        required(
            "file",
            Text("/var/lib/tidegate/buckets"),
            "Path of the file; its folder must exist. Each instance needs its own.",
        ),
        optional(
            "every",
            Text("10s"),
            "Charges that a crash may lose, at most: the interval of writes, 100ms to 1h. Default: \
             10s.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `store.redis`.
pub(crate) static REDIS: FieldTable = FieldTable {
    what: "`store.redis`",
    fields: &[
        optional(
            "topology",
            Word(&TOPOLOGY),
            "Redis topology; `auto` derives it from the URL. Default: `auto`.",
        ),
        optional(
            "master",
            Text("mymaster"),
            "Master name in the sentinels, if the URL does not contain it.",
        ),
        optional(
            "user",
            Text("tidegate"),
            "ACL user, if the URL does not contain it; needs a password. Default: the server's \
             `default` user.",
        ),
        optional(
            "password",
            Text("${REDIS_PASSWORD}"),
            "Password, if the URL does not contain it. Prefer `password_file` or a variable. Default: \
             none.",
        ),
        optional(
            "password_file",
            Text("/run/secrets/redis"),
            "File that holds `password`.",
        ),
        optional(
            "sentinel_user",
            Text("tidegate"),
            "User for the sentinels. Default: the master's.",
        ),
        optional(
            "sentinel_password",
            Text("${SENTINEL_PASSWORD}"),
            "Password for the sentinels; those without a password need none. Default: the master's.",
        ),
        optional(
            "sentinel_password_file",
            Text("/run/secrets/sentinel"),
            "File that holds `sentinel_password`.",
        ),
        optional(
            "tls",
            Map(&CLIENT_TLS),
            "Certificate authorities and client certificate for `rediss://`.",
        ),
        optional(
            "connections",
            Whole(1, CONNECTIONS_MAX),
            "Connections to each node; each carries many calls at a time. Default: 2.",
        ),
        optional(
            "connect_timeout",
            Text("1s"),
            "Connect timeout, 1ms to 1min. Default: 1s.",
        ),
        optional(
            "retries",
            Whole(0, RETRIES_MAX),
            "Retries within `timeout` of a call that Redis has certainly not executed. Tidegate also \
             repeats a charge whose result is unknown, once; with 0, never. Redirections of a Cluster \
             (`MOVED`, `ASK`, `TRYAGAIN`) do not count. Default: 1.",
        ),
        optional(
            "required",
            Flag,
            "`true`: do not start while Redis is unreachable. `false`: start with one warning, apply \
             `on_failure`, and connect later. Default: false.",
        ),
        optional(
            "prefix",
            Text("tg:"),
            "Prefix of Redis keys: up to 64 visible ASCII characters without braces. Default: `tg:`.",
        ),
        optional(
            "tag",
            Word(&TAG),
            "Hash tag of keys in a Cluster; no effect elsewhere. Default: `subject`.",
        ),
        optional(
            "layout",
            Word(&LAYOUT),
            "Storage format of buckets in Redis. Default: `packed`.",
        ),
        optional(
            "template",
            TEMPLATE,
            "Template of Redis keys with `layout: open`; a limit can override it. Default: by \
             algorithm.",
        ),
        optional(
            "key_names",
            Word(&KEY_NAMES),
            "API keys and other secrets in key names with `layout: open`: `hashed`, or `literal` \
             if another system uses the same keys. Default: `hashed`; `literal` with FluxGate \
             rules in `sources`.",
        ),
        optional(
            "deny_cache",
            Whole(0, DENY_CACHE_MAX),
            "Refused keys that each instance caches, so that repeated refusals need no call to Redis; \
             0 for none. Default: 100000.",
        ),
    ],
    exactly_one: &[],
};

/// The maximum number of connections to a node.
pub(crate) const CONNECTIONS_MAX: u64 = 64;

/// The maximum number of retries.
pub(crate) const RETRIES_MAX: u64 = 5;

/// The maximum number of entries in the deny cache: about 100 bytes each.
pub(crate) const DENY_CACHE_MAX: u64 = 10_000_000;

/// The maximum number of buckets of a store in memory.
pub(crate) const MAX_KEYS: u64 = 1 << 32;
