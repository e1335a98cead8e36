//! The environment of envoyproxy/ratelimit, value by value.

use super::table::{TABLE, VariableEffect, VariableGroup};
use super::{Peer, runtime_folder, xds};
use crate::logs::LogFormat;
use std::path::Path;
use tidegate_config::Config;
use tidegate_config::compose::NamedText;
use tidegate_import::EnvoyOptions;

/// Every variable of envoyproxy/ratelimit, from `src/settings/settings.go` at commit f2fb157.
const ALL: &str = "
HOST PORT DEBUG_HOST DEBUG_PORT GRPC_UDS GRPC_HOST GRPC_PORT GRPC_MAX_CONNECTION_AGE 
GRPC_MAX_CONNECTION_AGE_GRACE GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY 
GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN LOG_LEVEL LOG_FORMAT CONFIG_TYPE 
FORCE_START_WITHOUT_INITIAL_CONFIG CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA 
CONFIG_GRPC_XDS_SERVER_URL CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL 
CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_SERVER_USE_TLS 
CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY 
CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN 
XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL 
XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES 
USE_DOG_STATSD USE_DOG_STATSD_MOGRIFIERS USE_STATSD STATSD_HOST STATSD_PORT EXTRA_TAGS 
STATS_FLUSH_INTERVAL DISABLE_STATS USE_PROMETHEUS PROMETHEUS_ADDR PROMETHEUS_PATH 
PROMETHEUS_MAPPER_YAML PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS RUNTIME_ROOT 
RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT 
EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES NEAR_LIMIT_RATIO CACHE_KEY_PREFIX 
BACKEND_TYPE STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT LIMIT_RESPONSE_HEADERS_ENABLED 
LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER 
HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED REDIS_SOCKET_TYPE REDIS_TYPE REDIS_URL REDIS_POOL_SIZE 
REDIS_AUTH REDIS_TLS REDIS_TLS_CLIENT_CERT REDIS_TLS_CLIENT_KEY REDIS_TLS_CACERT 
REDIS_TLS_SKIP_HOSTNAME_VERIFICATION REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT 
REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND REDIS_PERSECOND_SOCKET_TYPE 
REDIS_PERSECOND_TYPE REDIS_PERSECOND_URL REDIS_PERSECOND_POOL_SIZE REDIS_PERSECOND_AUTH 
REDIS_PERSECOND_TLS REDIS_SENTINEL_AUTH REDIS_PERSECOND_SENTINEL_AUTH 
REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PERSECOND_PIPELINE_LIMIT 
REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM REDIS_HEALTH_CHECK_ACTIVE_CONNECTION REDIS_TIMEOUT 
REDIS_PERSECOND_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR 
REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME 
MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV MEMCACHE_SRV_REFRESH MEMCACHE_TLS 
MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_CACERT 
MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION SHADOW_MODE QUOTA_MODE RESPONSE_DYNAMIC_METADATA 
MERGE_DOMAIN_CONFIG TRACING_ENABLED TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE 
TRACING_SERVICE_INSTANCE_ID TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE
";

/// Returns an environment with these variables.
fn environment<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let found = set.iter().find(|(it, _)| *it == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn read(set: &[(&str, &str)]) -> Peer {
    let peer = Peer::read(&environment(set), false);
    peer.unwrap_or_else(|failure| panic!("{set:?}: {failure}"))
}

/// Returns the settings, as `path=text`.
fn settings(set: &[(&str, &str)]) -> Vec<String> {
    let settings = read(set).settings;
    let settings = settings.iter().map(|it| {
        let key = it.key.iter().map(|key| format!(".{key}"));
        format!("{}{}={}", it.path, key.collect::<String>(), it.text)
    });
    settings.collect()
}

#[test]
fn every_envoyproxy_ratelimit_variable_is_listed_once() {
    let listed: Vec<&str> = TABLE.iter().flat_map(|it| it.names).copied().collect();
    for name in ALL.split_whitespace() {
        let count = listed.iter().filter(|it| **it == name).count();
        assert_eq!(count, 1, "{name}");
    }
    for name in listed {
        let is_known = ALL.split_whitespace().any(|it| it == name);
        // Variables of libraries that it uses.
        let is_other = name.starts_with("OTEL_") || name == "STATSD_PROTOCOL";
        assert!(is_known || is_other, "{name}");
    }
}

/// Returns the row of an entry in the documentation.
fn row(entry: &VariableGroup) -> String {
    let names: Vec<&str> = match entry.short {
        Some(short) => short.split(", ").collect(),
        None => entry.names.to_vec(),
    };
    let effect = match entry.effect {
        VariableEffect::Honoured => "honoured",
        VariableEffect::Nothing | VariableEffect::NothingIfTrue => "no effect",
    };
    format!(
        "| `{}` | {effect} | {} |",
        names.join("`, `"),
        entry.instead
    )
}

#[test]
fn the_documentation_has_the_same_table() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/how-to/migrate/envoy-ratelimit.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<String> = TABLE.iter().map(row).collect();
    let table = rows.join("\n");
    assert!(page.contains(&table), "the page lacks this table:\n{table}");
}

#[test]
fn an_empty_environment_changes_nothing() {
    for set in [&[][..], &[("PORT", ""), ("SHADOW_MODE", " ")]] {
        let peer = read(set);
        assert_eq!(peer.settings, []);
        assert_eq!(peer.ignored, []);
        assert_eq!((peer.log_level, peer.log_format), (None, None));
        assert!(!peer.merge_domains && !peer.charge_if_fits && !peer.quota);
    }
}

#[test]
fn an_incomplete_address_is_completed_as_in_envoyproxy_ratelimit() {
    for (set, expected) in [
        (&[("PORT", "80")][..], "listen.http=0.0.0.0:80"),
        (&[("HOST", "10.0.0.1")], "listen.http=10.0.0.1:8080"),
        (&[("GRPC_HOST", "::1")], "listen.grpc=[::1]:8081"),
        (
            &[("DEBUG_PORT", "1"), ("DEBUG_HOST", "::")],
            "listen.admin=[::]:1",
        ),
        (
            &[("GRPC_PORT", "1"), ("GRPC_UDS", "/run/a")],
            "listen.grpc=unix:/run/a",
        ),
        (
            &[("GRPC_MAX_CONNECTION_AGE", "1m30s")],
            "listen.grpc.max_connection_age=90000000us",
        ),
        (
            &[("GRPC_MAX_CONNECTION_AGE", "0")],
            "listen.grpc.max_connection_age=off",
        ),
        (
            &[("GRPC_MAX_CONNECTION_AGE_GRACE", "0s")],
            "listen.grpc.max_connection_age_grace=365d",
        ),
    ] {
        assert_eq!(settings(set), [expected], "{set:?}");
    }
}

#[test]
fn the_redis_url_comes_from_the_environment() {
    let url = |url| ("REDIS_URL", url);
    let of = |set: &[(&str, &str)]| settings(set).join(" ");
    assert_eq!(
        of(&[url("redis:6379"), ("REDIS_SOCKET_TYPE", "tcp")]),
        "store.url=redis://redis:6379 store.redis.topology=standalone"
    );
    assert_eq!(
        of(&[
            url("redis://h:1/2"),
            ("REDIS_TLS", "true"),
            ("REDIS_TLS_CACERT", "/ca")
        ]),
        "store.url=rediss://h:1/2 store.redis.topology=standalone store.redis.tls.ca=/ca"
    );
    assert_eq!(
        of(&[
            url("a:1,b:2"),
            ("REDIS_TYPE", "CLUSTER"),
            ("REDIS_AUTH", "secret")
        ]),
        "store.url=redis://a:1,b:2 store.redis.topology=cluster store.redis.password=secret"
    );
    let sentinels = [
        url("mymaster,a:1,b:2"),
        ("REDIS_TYPE", "sentinel"),
        ("REDIS_AUTH", "ann:se:cret"),
        ("REDIS_SENTINEL_AUTH", "other"),
        ("REDIS_TIMEOUT", "5ms"),
        ("CACHE_KEY_PREFIX", "rl:"),
    ];
    assert_eq!(
        of(&sentinels),
        "store.redis.master=mymaster store.url=redis://a:1,b:2 store.redis.topology=sentinel store.redis.user=ann \
         store.redis.password=se:cret store.redis.sentinel_password=other store.timeout=5000us store.redis.prefix=rl:"
    );
}

#[test]
fn without_redis_url_other_redis_variables_are_named() {
    let peer = read(&[("REDIS_TYPE", "CLUSTER"), ("CACHE_KEY_PREFIX", "x")]);
    assert_eq!(peer.settings, []);
    let names: Vec<&str> = peer.ignored.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["REDIS_TYPE", "CACHE_KEY_PREFIX"]);
}

#[test]
fn traces_have_the_defaults_of_envoyproxy_ratelimit() {
    assert_eq!(settings(&[("TRACING_SERVICE_NAME", "a")]), [] as [&str; 0]);
    assert_eq!(
        settings(&[("TRACING_ENABLED", "true")]),
        [
            "traces.url=http://localhost:4318",
            "traces.service=RateLimit",
            "traces.sample=100%"
        ]
    );
    assert_eq!(
        settings(&[
            ("TRACING_ENABLED", "1"),
            ("TRACING_SERVICE_NAME", "edge"),
            ("TRACING_SAMPLING_RATE", "0.5"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=edge, x-key=se%20cret"),
        ]),
        [
            "traces.url=http://otel:4318",
            "traces.service=edge",
            "traces.sample=50.0000%",
            "traces.headers.x-team=edge",
            "traces.headers.x-key=se cret"
        ]
    );
}

/// Regression: spans went to another path than the one in the variable.
#[test]
fn an_endpoint_for_traces_only_got_another_path() {
    let of = |url| {
        let name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        Peer::read(
            &environment(&[("TRACING_ENABLED", "true"), (name, url)]),
            false,
        )
        .map(drop)
    };
    assert!(of("http://otel:4318/a/v1/traces").is_ok());
    let failure = of("http://otel:4318/spans").unwrap_err().to_string();
    assert!(failure.contains("does not end in /v1/traces"), "{failure}");
}

#[test]
fn a_bad_host_was_reported_as_a_bad_port() {
    for (port, first) in [("80", "HOST"), ("eighty", "PORT")] {
        let peer = read(&[("PORT", port), ("HOST", "some where")]);
        let names = peer.settings.first().map(|it| it.variables.clone());
        assert_eq!(names.unwrap().first(), Some(&first));
    }
}

#[test]
fn the_statsd_address_comes_from_the_environment() {
    let of = |set: &[(&str, &str)]| settings(set).join(" ");
    assert_eq!(of(&[("USE_STATSD", "false")]), "statsd.enabled=false");
    assert_eq!(of(&[("USE_PROMETHEUS", "true")]), "statsd.enabled=false");
    let off = [("DISABLE_STATS", "true"), ("STATSD_PORT", "1")];
    assert_eq!(of(&off), "statsd.enabled=false");
    assert_eq!(
        of(&[("STATSD_PORT", "9125"), ("STATS_FLUSH_INTERVAL", "5s")]),
        "statsd.address=localhost:9125 statsd.prefix=ratelimit.service.rate_limit \
         statsd.protocol=tcp statsd.interval=5000000us"
    );
    assert_eq!(
        of(&[
            ("USE_STATSD", "false"),
            ("USE_DOG_STATSD", "true"),
            ("STATSD_HOST", "agent"),
            ("EXTRA_TAGS", "env:prod,team:edge"),
        ]),
        "statsd.address=agent:8125 statsd.prefix=ratelimit.service.rate_limit \
         statsd.format=dogstatsd statsd.protocol=udp statsd.tags.env=prod statsd.tags.team=edge"
    );
}

#[test]
fn switches_and_logs_are_honoured() {
    let peer = read(&[
        ("MERGE_DOMAIN_CONFIG", "true"),
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "T"),
        ("QUOTA_MODE", "1"),
        ("LOG_LEVEL", "WARNING"),
        ("LOG_FORMAT", "JSON"),
    ]);
    assert!(peer.merge_domains && peer.charge_if_fits && peer.quota);
    assert_eq!(peer.log_level, Some("warn"));
    assert_eq!(peer.log_format, Some(LogFormat::Json));
}

#[test]
fn unsupported_and_invalid_variables_are_named_without_values() {
    for (name, value) in [
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_TYPE", "ETCD"),
        ("BACKEND_TYPE", "memcache"),
        ("REDIS_URL", "/var/run/redis.sock"),
        ("MERGE_DOMAIN_CONFIG", "yes-please"),
        ("GRPC_MAX_CONNECTION_AGE", "one-day"),
        ("LOG_LEVEL", "loud"),
        ("REDIS_PERSECOND", "perhaps"),
    ] {
        let set = [(name, value)];
        let failure = Peer::read(&environment(&set), false).map(drop);
        if name == "REDIS_PERSECOND" {
            // It has no effect, regardless of its value.
            assert!(failure.is_ok());
            continue;
        }
        let text = failure.unwrap_err().to_string();
        assert!(
            text.contains(&format!("environment variable {name}: ")),
            "{text}"
        );
        assert!(text.contains("   help: "), "{text}");
        assert!(!text.contains(value), "{text}");
    }
    let all = [
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_CLIENT_TLS_SAN", "envoy"),
        ("TRACING_ENABLED", "true"),
        ("TRACING_EXPORTER_PROTOCOL", "gRPC"),
        ("TRACING_SAMPLING_RATE", "2"),
        ("REDIS_URL", "a:1"),
        ("REDIS_TYPE", "ring"),
    ];
    let text = Peer::read(&environment(&all), false)
        .unwrap_err()
        .to_string();
    for name in [
        "GRPC_SERVER_TLS_CERT",
        "GRPC_SERVER_TLS_KEY",
        "GRPC_CLIENT_TLS_SAN",
        "TRACING_EXPORTER_PROTOCOL",
        "TRACING_SAMPLING_RATE",
        "REDIS_TYPE",
    ] {
        assert!(
            text.contains(&format!("environment variable {name}: ")),
            "{text}"
        );
    }
}

#[test]
fn a_switch_without_effect_is_named_only_if_enabled() {
    let off = read(&[("RESPONSE_DYNAMIC_METADATA", "false")]);
    assert_eq!(off.ignored, []);
    let on = read(&[
        ("RESPONSE_DYNAMIC_METADATA", "true"),
        ("NEAR_LIMIT_RATIO", "0.9"),
    ]);
    let names: Vec<&str> = on.ignored.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["RESPONSE_DYNAMIC_METADATA", "NEAR_LIMIT_RATIO"]);
}

#[test]
fn the_folder_is_the_one_read_by_envoyproxy_ratelimit() {
    for (set, expected) in [
        (&[][..], "/srv/runtime_data/current/config"),
        (
            &[
                ("RUNTIME_ROOT", "/data"),
                ("RUNTIME_SUBDIRECTORY", "ratelimit"),
            ],
            "/data/ratelimit/config",
        ),
        (
            &[
                ("RUNTIME_ROOT", "/data"),
                ("RUNTIME_APPDIRECTORY", "limits"),
            ],
            "/data/limits",
        ),
        // Regression: the root was discarded.
        (
            &[
                ("RUNTIME_ROOT", "/data"),
                ("RUNTIME_SUBDIRECTORY", "/ratelimit"),
            ],
            "/data/ratelimit/config",
        ),
    ] {
        assert_eq!(runtime_folder(&environment(set)), Path::new(expected));
    }
}

fn xds(set: &[(&str, &str)], server: &str, node: Option<&str>) -> Result<String, String> {
    let options = EnvoyOptions::default();
    let text = xds::text(&environment(set), (server, node), options, true);
    let text = text.map_err(|failure| failure.to_string())?;
    let own = NamedText {
        name: "--envoy-xds",
        text: &text,
    };
    let files = |name: &str| environment(set)(name);
    let sources = Config::sources_of(own, &files);
    sources.map_err(|errors| errors.to_string())?;
    Ok(text)
}

#[test]
fn the_xds_server_comes_from_the_environment() {
    for (set, server, node, expected) in [
        (
            &[][..],
            xds::SERVER,
            None,
            r#"{"timeout":"10min","xds":{"url":"http://localhost:18000"}}"#,
        ),
        (
            &[
                ("CONFIG_GRPC_XDS_SERVER_URL", "dns:///eg:18001"),
                ("CONFIG_GRPC_XDS_NODE_ID", "a"),
            ],
            xds::SERVER,
            None,
            r#"{"timeout":"10min","xds":{"node_id":"${CONFIG_GRPC_XDS_NODE_ID}","url":"http://eg:18001"}}"#,
        ),
        (
            &[
                ("CONFIG_GRPC_XDS_SERVER_URL", "elsewhere:1"),
                ("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"),
                ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "eg.internal"),
                ("CONFIG_GRPC_XDS_NODE_ID", "a"),
                ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
                ("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s"),
            ],
            "eg:18001",
            Some("b"),
            r#"{"refresh":"3000000us","required":false,"xds":{"node_id":"b","tls":{"server_name":"${CONFIG_GRPC_XDS_SERVER_TLS_SAN}"},"url":"https://eg:18001"}}"#,
        ),
        (
            &[
                ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a, team=edge"),
                (
                    "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
                    "x-a:1,x-b:${PATH}",
                ),
                ("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"),
                ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true"),
            ],
            "http://eg:18001",
            None,
            r#"{"timeout":"10min","xds":{"headers":{"x-a":"1","x-b":"$${PATH}"},"node_metadata":{"team":"edge","zone":"a"},"url":"http://eg:18001"}}"#,
        ),
    ] {
        let text = xds(set, server, node).unwrap();
        assert_eq!(text, format!(r#"{{"sources":[{expected}]}}"#));
    }
    for (set, server, expected) in [
        (&[][..], "eg", "is not the address of an xDS server"),
        (
            &[("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "1ms")],
            "eg:1",
            "environment variable CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: is too short",
        ),
        (
            &[("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "x-a")],
            "eg:1",
            "environment variable CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: is not a list of pairs",
        ),
    ] {
        let error = xds(set, server, None).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn variables_of_the_other_kind_of_limits_are_named() {
    let set = [("RUNTIME_ROOT", "/data"), ("CONFIG_GRPC_XDS_NODE_ID", "a")];
    for (is_xds, expected) in [(false, "CONFIG_GRPC_XDS_NODE_ID"), (true, "RUNTIME_ROOT")] {
        let peer = Peer::read(&environment(&set), is_xds).unwrap();
        let names: Vec<&str> = peer.ignored.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [expected]);
    }
}
