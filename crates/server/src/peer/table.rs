//! Every environment variable of envoyproxy/ratelimit, and its effect here.
//!
//! A deployment of that service sets its variables and nothing else. Each is honoured, or has no effect
//! here and is named in one warning, with the setting that replaces it. A new variable of the service is one
//! row.

/// Some variables with one effect.
#[derive(Debug)]
pub(super) struct VariableGroup {
    pub(super) names: &'static [&'static str],
    /// The short form that the documentation has in place of many names.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test compares the documentation")
    )]
    pub(super) short: Option<&'static str>,
    pub(super) effect: VariableEffect,
    /// The setting that it becomes, or its replacement.
    pub(super) instead: &'static str,
}

/// The effect of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableEffect {
    /// The variable is honoured.
    Honoured,
    /// The variable has no effect.
    Nothing,
    /// The variable has no effect, which matters only if it is true.
    NothingIfTrue,
}

use VariableEffect::{Honoured, Nothing, NothingIfTrue};

/// All of them, in the order of the documentation.
pub(super) const TABLE: &[VariableGroup] = &[
    entry(&["HOST", "PORT"], Honoured, "`listen.http`"),
    entry(
        &["GRPC_HOST", "GRPC_PORT", "GRPC_UDS"],
        Honoured,
        "`listen.grpc`",
    ),
    entry(&["DEBUG_HOST", "DEBUG_PORT"], Honoured, "`listen.admin`"),
    entry(
        &["GRPC_MAX_CONNECTION_AGE", "GRPC_MAX_CONNECTION_AGE_GRACE"],
        Honoured,
        "`max_connection_age` and `max_connection_age_grace` of `listen.grpc`",
    ),
    entry(
        &[
            "GRPC_SERVER_USE_TLS",
            "GRPC_SERVER_TLS_CERT",
            "GRPC_SERVER_TLS_KEY",
            "GRPC_CLIENT_TLS_CACERT",
        ],
        Honoured,
        "`tls` of `listen.grpc`",
    ),
    entry(
        &["GRPC_CLIENT_TLS_SAN"],
        Honoured,
        "refused with GRPC_SERVER_USE_TLS: names of client certificates are not checked",
    ),
    entry(
        &[
            "RUNTIME_ROOT",
            "RUNTIME_SUBDIRECTORY",
            "RUNTIME_APPDIRECTORY",
        ],
        Honoured,
        "the folder of `--envoy-config` without a value",
    ),
    entry(
        &["RUNTIME_WATCH_ROOT", "RUNTIME_IGNOREDOTFILES"],
        Nothing,
        "the folder is watched in either case, and hidden files are not read; see `--no-watch`",
    ),
    entry(&["MERGE_DOMAIN_CONFIG"], Honoured, "`--merge-domains`"),
    entry(
        &["CONFIG_TYPE"],
        Honoured,
        "FILE, or GRPC_XDS_SOTW for `--envoy-xds`",
    ),
    entry(
        &["CONFIG_GRPC_XDS_SERVER_URL"],
        Honoured,
        "the server of `--envoy-xds` without a value",
    ),
    entry(&["CONFIG_GRPC_XDS_NODE_ID"], Honoured, "`--envoy-xds-node`"),
    entry(
        &[
            "CONFIG_GRPC_XDS_NODE_METADATA",
            "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
        ],
        Honoured,
        "`node_metadata` and `headers` of the `xds` source",
    ),
    entry(
        &["CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL"],
        Honoured,
        "`refresh` of the `xds` source: the maximum delay between two attempts",
    ),
    entry(
        &[
            "CONFIG_GRPC_XDS_SERVER_USE_TLS",
            "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
            "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
            "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
            "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
        ],
        Honoured,
        "`https://` and `tls` of the `xds` source",
    ),
    entry(
        &[
            "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
            "XDS_CLIENT_BACKOFF_MAX_INTERVAL",
            "XDS_CLIENT_BACKOFF_RANDOM_FACTOR",
            "XDS_CLIENT_BACKOFF_JITTER",
        ],
        Nothing,
        "not needed: retries begin after a second, with jitter; see CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
    ),
    entry(
        &["XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES"],
        Nothing,
        "a response may have 16 MiB",
    ),
    entry(
        &["FORCE_START_WITHOUT_INITIAL_CONFIG"],
        Honoured,
        "`required: false` of the `xds` source",
    ),
    entry(
        &["HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"],
        Honoured,
        "it is ready as soon as the configuration is loaded: FORCE_START_WITHOUT_INITIAL_CONFIG has no effect",
    ),
    entry(
        &["BACKEND_TYPE"],
        Honoured,
        "redis; any other value is refused: memcached is not supported",
    ),
    entry(
        &[
            "REDIS_URL",
            "REDIS_TYPE",
            "REDIS_SOCKET_TYPE",
            "REDIS_TLS",
            "REDIS_TLS_CLIENT_CERT",
            "REDIS_TLS_CLIENT_KEY",
            "REDIS_TLS_CACERT",
            "REDIS_AUTH",
            "REDIS_SENTINEL_AUTH",
        ],
        Honoured,
        "`store`, unless a store URL is configured; a unix socket is refused. Without REDIS_URL, Tidegate counts in memory",
    ),
    entry(
        &["REDIS_TIMEOUT"],
        Honoured,
        "`store.timeout`. Envoy waits for 20 ms by default, so stay below",
    ),
    entry(&["CACHE_KEY_PREFIX"], Honoured, "`store.redis.prefix`"),
    entry(
        &["REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"],
        NothingIfTrue,
        "host names are always verified",
    ),
    VariableGroup {
        short: Some("REDIS_PERSECOND, REDIS_PERSECOND_*"),
        ..entry(
            &[
                "REDIS_PERSECOND",
                "REDIS_PERSECOND_SOCKET_TYPE",
                "REDIS_PERSECOND_TYPE",
                "REDIS_PERSECOND_URL",
                "REDIS_PERSECOND_POOL_SIZE",
                "REDIS_PERSECOND_AUTH",
                "REDIS_PERSECOND_TLS",
                "REDIS_PERSECOND_SENTINEL_AUTH",
                "REDIS_PERSECOND_PIPELINE_WINDOW",
                "REDIS_PERSECOND_PIPELINE_LIMIT",
                "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
                "REDIS_PERSECOND_TIMEOUT",
                "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR",
            ],
            Nothing,
            "limits per second are in the same store as all others",
        )
    },
    entry(
        &[
            "REDIS_POOL_SIZE",
            "REDIS_POOL_ON_EMPTY_BEHAVIOR",
            "REDIS_PIPELINE_WINDOW",
            "REDIS_PIPELINE_LIMIT",
            "REDIS_CLUSTER_PIPELINE_PARALLELISM",
        ],
        Nothing,
        "not needed: each connection carries many calls at a time; see `store.redis.connections`",
    ),
    entry(
        &[
            "REDIS_STARTUP_INITIAL_INTERVAL",
            "REDIS_STARTUP_MAX_INTERVAL",
            "REDIS_STARTUP_MAX_ELAPSED_TIME",
        ],
        Nothing,
        "not needed: Tidegate starts without Redis and connects later; see `store.redis.required`",
    ),
    entry(
        &["REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"],
        NothingIfTrue,
        "without Redis, Tidegate stays ready and `store.on_failure` decides; see `/status`",
    ),
    VariableGroup {
        short: Some("MEMCACHE_*"),
        ..entry(
            &[
                "MEMCACHE_HOST_PORT",
                "MEMCACHE_MAX_IDLE_CONNS",
                "MEMCACHE_SRV",
                "MEMCACHE_SRV_REFRESH",
                "MEMCACHE_TLS",
                "MEMCACHE_TLS_CLIENT_CERT",
                "MEMCACHE_TLS_CLIENT_KEY",
                "MEMCACHE_TLS_CACERT",
                "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
            ],
            Nothing,
            "memcached is not supported",
        )
    },
    entry(
        &["EXPIRATION_JITTER_MAX_SECONDS"],
        Nothing,
        "not needed: a key expires when its window ends",
    ),
    entry(
        &["LOCAL_CACHE_SIZE_IN_BYTES"],
        Nothing,
        "not needed: refused keys are remembered; see `store.redis.deny_cache`",
    ),
    entry(
        &["STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"],
        Honoured,
        "`--charge if-fits`",
    ),
    entry(
        &["SHADOW_MODE"],
        Honoured,
        "`mode: shadow` for the whole configuration, unless the file has `mode`",
    ),
    entry(&["QUOTA_MODE"], Honoured, "`combine: any` for every limit"),
    entry(
        &["LIMIT_RESPONSE_HEADERS_ENABLED"],
        Honoured,
        "`respond: { headers: draft-03, rls: always }`",
    ),
    entry(
        &[
            "LIMIT_LIMIT_HEADER",
            "LIMIT_REMAINING_HEADER",
            "LIMIT_RESET_HEADER",
        ],
        Nothing,
        "headers have the names of `respond.headers`",
    ),
    entry(
        &["RESPONSE_DYNAMIC_METADATA"],
        NothingIfTrue,
        "responses have no dynamic metadata",
    ),
    entry(&["LOG_LEVEL"], Honoured, "`--log`"),
    entry(&["LOG_FORMAT"], Honoured, "`--log-format`"),
    entry(
        &[
            "TRACING_ENABLED",
            "TRACING_SERVICE_NAME",
            "TRACING_SAMPLING_RATE",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ],
        Honoured,
        "`traces`",
    ),
    entry(
        &["TRACING_EXPORTER_PROTOCOL"],
        Honoured,
        "http; any other value is refused with TRACING_ENABLED: spans are sent over HTTP",
    ),
    entry(
        &["TRACING_SERVICE_NAMESPACE", "TRACING_SERVICE_INSTANCE_ID"],
        Nothing,
        "spans have a service name only",
    ),
    entry(
        &["USE_PROMETHEUS"],
        Honoured,
        "turns `statsd` off; metrics are at `/metrics` of `listen.admin` in any case",
    ),
    entry(
        &[
            "PROMETHEUS_ADDR",
            "PROMETHEUS_PATH",
            "PROMETHEUS_MAPPER_YAML",
            "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS",
        ],
        Nothing,
        "metrics are at `/metrics` of `listen.admin`, under Tidegate's names",
    ),
    entry(
        &["NEAR_LIMIT_RATIO"],
        Nothing,
        "the near limit is always 0.8",
    ),
    entry(
        &[
            "USE_STATSD",
            "DISABLE_STATS",
            "STATSD_HOST",
            "STATSD_PORT",
            "STATSD_PROTOCOL",
            "USE_DOG_STATSD",
            "EXTRA_TAGS",
            "STATS_FLUSH_INTERVAL",
        ],
        Honoured,
        "`statsd`, unless the file has it",
    ),
    entry(
        &["USE_DOG_STATSD_MOGRIFIERS"],
        Nothing,
        "rewrite names in the statsd server or the Datadog agent",
    ),
];

const fn entry(
    names: &'static [&'static str],
    effect: VariableEffect,
    instead: &'static str,
) -> VariableGroup {
    VariableGroup {
        names,
        short: None,
        effect,
        instead,
    }
}
