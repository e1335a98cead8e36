//! `REDIS_*` of envoyproxy/ratelimit: the address of Redis, and connection settings.

use super::setting;
use super::values::Variables;
use tidegate_config::Setting;

/// Variables that have an effect only together with `REDIS_URL`.
pub(super) const WITH_URL: [&str; 10] = [
    "REDIS_TYPE",
    "REDIS_SOCKET_TYPE",
    "REDIS_TLS",
    "REDIS_TLS_CLIENT_CERT",
    "REDIS_TLS_CLIENT_KEY",
    "REDIS_TLS_CACERT",
    "REDIS_AUTH",
    "REDIS_SENTINEL_AUTH",
    "REDIS_TIMEOUT",
    "CACHE_KEY_PREFIX",
];

/// Adds the settings of `store`, if `REDIS_URL` is set.
pub(super) fn add(variables: &mut Variables<'_>, settings: &mut Vec<Setting>) {
    let Some(url) = variables.get("REDIS_URL") else {
        return;
    };
    let has_tls = variables.is_true("REDIS_TLS");
    let kind = variables.get("REDIS_TYPE").unwrap_or_default();
    let (mode, hosts) = match kind.to_ascii_lowercase().as_str() {
        "" | "single" => ("standalone", url.as_str()),
        "cluster" => ("cluster", url.as_str()),
        "sentinel" => match url.split_once(',') {
            Some((master, hosts)) => {
                settings.push(setting(&["REDIS_URL"], "store.redis.master", master));
                ("sentinel", hosts)
            }
            None => {
                let help = "write the master's name and the sentinels: mymaster,a:26379,b:26379";
                return variables.refuse("REDIS_URL", "does not name sentinels", help);
            }
        },
        _ => {
            let help = "write SINGLE, SENTINEL or CLUSTER";
            return variables.refuse("REDIS_TYPE", "is not a kind of Redis", help);
        }
    };
    let socket = variables.get("REDIS_SOCKET_TYPE");
    let is_unix = socket.is_some_and(|socket| socket == "unix") && mode == "standalone";
    if is_unix || hosts.starts_with('/') {
        let help =
            "let Redis listen on TCP, set REDIS_URL to HOST:PORT and REDIS_SOCKET_TYPE to tcp";
        let why = "Tidegate does not speak to Redis over unix sockets";
        return variables.refuse("REDIS_URL", why, help);
    }
    let names = ["REDIS_URL", "REDIS_TYPE", "REDIS_TLS", "REDIS_SOCKET_TYPE"];
    let names: Vec<_> = names
        .into_iter()
        .filter(|name| variables.get(name).is_some())
        .collect();
    settings.push(setting(&names, "store.url", &with_scheme(hosts, has_tls)));
    settings.push(setting(&["REDIS_TYPE"], "store.redis.topology", mode));
    add_identity(variables, settings, mode == "sentinel");
    if has_tls {
        for (name, path) in [
            ("REDIS_TLS_CLIENT_CERT", "store.redis.tls.cert"),
            ("REDIS_TLS_CLIENT_KEY", "store.redis.tls.key"),
            ("REDIS_TLS_CACERT", "store.redis.tls.ca"),
        ] {
            let file = variables.get(name);
            settings.extend(file.map(|file| setting(&[name], path, &file)));
        }
    }
    if let Some(micros) = variables.micros("REDIS_TIMEOUT") {
        settings.push(setting(
            &["REDIS_TIMEOUT"],
            "store.timeout",
            &format!("{micros}us"),
        ));
    }
    let prefix = variables.get("CACHE_KEY_PREFIX");
    settings.extend(prefix.map(|it| setting(&["CACHE_KEY_PREFIX"], "store.redis.prefix", &it)));
}

/// Returns addresses as a URL. One that has a scheme keeps everything else.
fn with_scheme(hosts: &str, has_tls: bool) -> String {
    let scheme = if has_tls { "rediss" } else { "redis" };
    match hosts.split_once("://") {
        Some(("redis", rest)) => format!("{scheme}://{rest}"),
        Some(_) => hosts.to_owned(),
        None => format!("{scheme}://{hosts}"),
    }
}

/// Adds users and passwords: `PASSWORD` or `USER:PASSWORD`.
fn add_identity(variables: &Variables<'_>, settings: &mut Vec<Setting>, has_sentinels: bool) {
    let identities = [
        ("REDIS_AUTH", "store.redis.user", "store.redis.password"),
        (
            "REDIS_SENTINEL_AUTH",
            "store.redis.sentinel_user",
            "store.redis.sentinel_password",
        ),
    ];
    let count = if has_sentinels { 2 } else { 1 };
    for (name, user_path, password_path) in identities.into_iter().take(count) {
        let Some(auth) = variables.get(name) else {
            continue;
        };
        let password = match auth.split_once(':') {
            Some((user, password)) => {
                settings.push(setting(&[name], user_path, user));
                password
            }
            None => &auth,
        };
        settings.push(setting(&[name], password_path, password));
    }
}
