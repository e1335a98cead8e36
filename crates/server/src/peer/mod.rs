//! The environment variables of envoyproxy/ratelimit, for `serve` with `--envoy-config` or `--envoy-xds`.
//!
//! Each variable that is set is honoured, or named in one warning at the start together with its
//! replacement. Values are never logged: some are secrets.
//!
//! | module | what it is |
//! |---|---|
//! | `table` | every variable and its effect; the documentation has the same table |
//! | `values` | the syntax of values in the other program |
//! | `redis`, `statsd` | the store, and statistics |
//! | `xds` | the xDS server |

mod redis;
mod statsd;
mod table;
#[cfg(test)]
mod tests;
mod values;
pub(crate) mod xds;

use crate::logs::LogFormat;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use table::{TABLE, VariableEffect};
use tidegate::ProcessEnvironment;
use tidegate_config::traces::Traces;
use tidegate_config::{Environment, Setting};
use tidegate_control::failure::Failure;
use tracing::warn;
use values::Variables;

/// The variables that have an effect on files only.
const FILES: [&str; 3] = [
    "RUNTIME_ROOT",
    "RUNTIME_SUBDIRECTORY",
    "RUNTIME_APPDIRECTORY",
];

/// Stands for the folder that the environment names, if `--envoy-config` has no value.
pub(crate) const FOLDER: &str = "${RUNTIME_ROOT}";

/// The settings in the environment of envoyproxy/ratelimit.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Settings to use if the configuration has none.
    pub(crate) settings: Vec<Setting>,
    /// Several files may have limits of the same domain.
    pub(crate) merge_domains: bool,
    /// Calls that do not fit are never charged.
    pub(crate) charge_if_fits: bool,
    /// Every limit is a quota.
    pub(crate) quota: bool,
    pub(crate) log_level: Option<&'static str>,
    pub(crate) log_format: Option<LogFormat>,
    /// Variables that are set and have no effect, each with its replacement.
    ignored: Vec<(&'static str, &'static str)>,
}

/// The place of limits that `--envoy-config` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvoySource {
    /// A folder, or a file.
    Files(PathBuf),
    /// The xDS server in the environment.
    Xds,
}

/// Returns the place of `--envoy-config` with this value.
pub(crate) fn place(value: OsString) -> EnvoySource {
    if value != FOLDER {
        return EnvoySource::Files(value.into());
    }
    if xds::is_wanted() {
        return EnvoySource::Xds;
    }
    EnvoySource::Files(runtime_folder(&ProcessEnvironment::new()))
}

fn runtime_folder(environment: &dyn Environment) -> PathBuf {
    let variables = Variables::new(environment);
    let or = |name, default: &str| variables.get(name).unwrap_or_else(|| default.to_owned());
    let root = or("RUNTIME_ROOT", "/srv/runtime_data/current");
    let below = [
        or("RUNTIME_SUBDIRECTORY", ""),
        or("RUNTIME_APPDIRECTORY", "config"),
    ];
    // Joining an absolute path would discard the root.
    let below = below.iter().map(|part| part.trim_start_matches('/'));
    below.fold(PathBuf::from(root), |path, part| path.join(part))
}

impl Peer {
    /// Reads the environment of this process, or fails with all its errors. `is_xds` is true if limits come
    /// over xDS.
    pub(crate) fn of_process(is_xds: bool) -> Result<Self, Failure> {
        Self::read(&ProcessEnvironment::new(), is_xds)
    }

    fn read(environment: &dyn Environment, is_xds: bool) -> Result<Self, Failure> {
        let mut variables = Variables::new(environment);
        let mut peer = Self {
            merge_domains: variables.is_true("MERGE_DOMAIN_CONFIG"),
            charge_if_fits: variables.is_true("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"),
            quota: variables.is_true("QUOTA_MODE"),
            log_level: log_level(&mut variables),
            log_format: log_format(&variables),
            ..Self::default()
        };
        refuse_elsewhere(&mut variables, is_xds);
        let settings = &mut peer.settings;
        add_listeners(&mut variables, settings);
        add_tls(&mut variables, settings);
        redis::add(&mut variables, settings);
        add_traces(&mut variables, settings);
        statsd::add(&mut variables, settings);
        if variables.is_true("SHADOW_MODE") {
            settings.push(setting(&["SHADOW_MODE"], "mode", "shadow"));
        }
        if variables.is_true("LIMIT_RESPONSE_HEADERS_ENABLED") {
            let name = ["LIMIT_RESPONSE_HEADERS_ENABLED"];
            settings.push(setting(&name, "respond.headers", "draft-03"));
            settings.push(setting(&name, "respond.rls", "always"));
        }
        peer.ignored = ignored(&mut variables, is_xds);
        if variables.errors.is_empty() {
            return Ok(peer);
        }
        Err(Failure::input(variables.errors.join("\n")))
    }

    /// Logs the variables that have no effect, if there are any.
    pub(crate) fn warn(&self) {
        if self.ignored.is_empty() {
            return;
        }
        let ignored = self.ignored.iter();
        let ignored: Vec<String> = ignored
            .map(|(name, instead)| format!("{name} ({instead})"))
            .collect();
        warn!(
            event = "environment_ignored",
            variables = ignored.join("; "),
            "environment variables of envoyproxy/ratelimit have no effect"
        );
    }

    /// Logs the variables that are set and not among `taken`, those that took effect.
    pub(crate) fn warn_of_overridden(&self, taken: &[String]) {
        let process = ProcessEnvironment::new();
        let variables = Variables::new(&process);
        let names = self.settings.iter().flat_map(|it| &it.variables);
        let overridden: BTreeSet<&str> = names
            .copied()
            .filter(|name| !taken.iter().any(|it| it == name) && variables.get(name).is_some())
            .collect();
        if !overridden.is_empty() {
            let overridden: Vec<&str> = overridden.into_iter().collect();
            warn!(
                event = "environment_overridden",
                variables = overridden.join(", "),
                "environment variables have no effect; the config or a flag sets the value, or the listener is not open"
            );
        }
    }
}

fn setting(variables: &[&'static str], path: &'static str, text: &str) -> Setting {
    Setting {
        variables: variables.to_vec(),
        path,
        key: None,
        text: text.to_owned(),
        replaces_text: false,
    }
}

/// Rejects variables that would put limits or counters elsewhere.
fn refuse_elsewhere(variables: &mut Variables<'_>, is_xds: bool) {
    match variables.get("CONFIG_TYPE").as_deref() {
        None | Some("FILE") => {}
        Some(xds::CONFIG_TYPE) if is_xds => {}
        Some(xds::CONFIG_TYPE) => {
            let help = "use --envoy-xds instead of --envoy-config DIR, or unset it";
            let why = "has limits come over xDS, and --envoy-config names files";
            variables.refuse("CONFIG_TYPE", why, help);
        }
        Some(_) => {
            let help = "unset it, or write FILE or GRPC_XDS_SOTW";
            variables.refuse("CONFIG_TYPE", "is not a type of configuration", help);
        }
    }
    let backend = variables.get("BACKEND_TYPE");
    if backend.is_some_and(|kind| kind != "redis") {
        let help = "unset it or write redis, and set REDIS_URL";
        variables.refuse("BACKEND_TYPE", "counters are in Redis or in memory", help);
    }
}

/// Adds addresses and maximum connection ages of listeners. A partial address is completed like in the
/// other program.
fn add_listeners(variables: &mut Variables<'_>, settings: &mut Vec<Setting>) {
    for (names, port, path) in [
        (["PORT", "HOST"], "8080", "listen.http"),
        (["GRPC_PORT", "GRPC_HOST"], "8081", "listen.grpc"),
        (["DEBUG_PORT", "DEBUG_HOST"], "6070", "listen.admin"),
    ] {
        let socket = variables.get("GRPC_UDS");
        if let Some(socket) = socket.filter(|_| path == "listen.grpc") {
            settings.push(setting(&["GRPC_UDS"], path, &format!("unix:{socket}")));
            continue;
        }
        let values = names.map(|name| variables.get(name));
        let names = names.into_iter().zip(&values);
        let mut names: Vec<_> = names
            .filter_map(|(name, value)| value.as_ref().map(|_| name))
            .collect();
        if names.is_empty() {
            continue;
        }
        let [given, host] = values;
        let host = host.unwrap_or_else(|| "0.0.0.0".to_owned());
        let port = given.unwrap_or_else(|| port.to_owned());
        // Errors name the first: a port that is a number is not at fault.
        if port.parse::<u16>().is_ok() {
            names.reverse();
        }
        let address = if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        settings.push(setting(&names, path, &address));
    }
    // Zero means no maximum there.
    for (name, path, zero) in [
        (
            "GRPC_MAX_CONNECTION_AGE",
            "listen.grpc.max_connection_age",
            "off",
        ),
        (
            "GRPC_MAX_CONNECTION_AGE_GRACE",
            "listen.grpc.max_connection_age_grace",
            "365d",
        ),
    ] {
        let text = variables.micros(name).map(|micros| match micros {
            0 => zero.to_owned(),
            micros => format!("{micros}us"),
        });
        settings.extend(text.map(|text| setting(&[name], path, &text)));
    }
}

fn add_tls(variables: &mut Variables<'_>, settings: &mut Vec<Setting>) {
    if !variables.is_true("GRPC_SERVER_USE_TLS") {
        return;
    }
    for (name, path, is_required) in [
        ("GRPC_SERVER_TLS_CERT", "listen.grpc.tls.cert", true),
        ("GRPC_SERVER_TLS_KEY", "listen.grpc.tls.key", true),
        ("GRPC_CLIENT_TLS_CACERT", "listen.grpc.tls.client_ca", false),
    ] {
        match variables.get(name) {
            Some(file) => {
                settings.push(setting(&[name, "GRPC_SERVER_USE_TLS"], path, &file));
            }
            None if is_required => {
                let help = "write the path of a PEM file, or unset GRPC_SERVER_USE_TLS";
                variables.refuse(name, "is not set, and GRPC_SERVER_USE_TLS is true", help);
            }
            None => {}
        }
    }
    // Without it, clients would be accepted that the other program rejects.
    if variables.get("GRPC_CLIENT_TLS_SAN").is_some() {
        let why = "names of client certificates are not checked";
        let help = "unset it, and let GRPC_CLIENT_TLS_CACERT name an authority that signs for these clients alone";
        variables.refuse("GRPC_CLIENT_TLS_SAN", why, help);
    }
}

fn add_traces(variables: &mut Variables<'_>, settings: &mut Vec<Setting>) {
    if !variables.is_true("TRACING_ENABLED") {
        return;
    }
    let protocol = variables.get("TRACING_EXPORTER_PROTOCOL");
    if protocol.is_some_and(|protocol| !protocol.eq_ignore_ascii_case("http")) {
        let help = "write http and name the collector's port for it, usually 4318, in OTEL_EXPORTER_OTLP_ENDPOINT";
        let why = "spans are sent over HTTP only";
        variables.refuse("TRACING_EXPORTER_PROTOCOL", why, help);
    }
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let endpoint = names
        .iter()
        .find_map(|name| Some((*name, variables.get(name)?)));
    let on = "TRACING_ENABLED";
    let [whole, _] = names;
    // OpenTelemetry uses this one unchanged, and Tidegate adds the path where it is missing.
    if let Some((name, url)) = &endpoint
        && *name == whole
        && !url.ends_with(Traces::PATH)
    {
        let help = "write the whole URL, as in http://HOST:4318/v1/traces, or use OTEL_EXPORTER_OTLP_ENDPOINT";
        variables.refuse(whole, "does not end in /v1/traces", help);
    }
    let (name, endpoint) = endpoint.unwrap_or_else(|| (on, "http://localhost:4318".to_owned()));
    settings.push(setting(&[name, on], "traces.url", &endpoint));
    let service = variables.get("TRACING_SERVICE_NAME");
    let name = service.as_ref().map_or(on, |_| "TRACING_SERVICE_NAME");
    let service = service.as_deref().unwrap_or("RateLimit");
    settings.push(setting(&[name], "traces.service", service));
    let sample = variables.percentage("TRACING_SAMPLING_RATE");
    let name = sample.as_ref().map_or(on, |_| "TRACING_SAMPLING_RATE");
    let sample = sample.as_deref().unwrap_or("100%");
    settings.push(setting(&[name], "traces.sample", sample));
    let headers = "OTEL_EXPORTER_OTLP_HEADERS";
    for (name, value) in variables.pairs(headers, '=') {
        let Some(value) = values::unescaped(&value) else {
            let help = "write % as %25, and other characters as they are or as %XX of their UTF-8";
            variables.refuse(headers, "has a wrong percent-encoding", help);
            continue;
        };
        settings.push(Setting {
            key: Some(name),
            ..setting(&[headers], "traces.headers", &value)
        });
    }
}

fn log_level(variables: &mut Variables<'_>) -> Option<&'static str> {
    let level = variables.get("LOG_LEVEL")?;
    match level.to_ascii_lowercase().as_str() {
        "panic" | "fatal" | "error" => Some("error"),
        "warn" | "warning" => Some("warn"),
        "info" => Some("info"),
        "debug" => Some("debug"),
        "trace" => Some("trace"),
        _ => {
            let help = "write error, warn, info, debug or trace";
            variables.refuse("LOG_LEVEL", "is not a log level", help);
            None
        }
    }
}

/// Returns the format of the log. Any word but `json` means text there.
fn log_format(variables: &Variables<'_>) -> Option<LogFormat> {
    let format = variables.get("LOG_FORMAT")?;
    Some(if format.eq_ignore_ascii_case("json") {
        LogFormat::Json
    } else {
        LogFormat::Text
    })
}

/// Returns the variables that are set and have no effect.
fn ignored(variables: &mut Variables<'_>, is_xds: bool) -> Vec<(&'static str, &'static str)> {
    let mut ignored = Vec::new();
    for entry in TABLE {
        for name in entry.names {
            let is_ignored = match entry.effect {
                VariableEffect::Honoured => false,
                VariableEffect::Nothing => variables.get(name).is_some(),
                VariableEffect::NothingIfTrue => variables.is_true(name),
            };
            if is_ignored {
                ignored.push((*name, entry.instead));
            }
        }
    }
    let elsewhere = if is_xds {
        (&FILES[..], "limits come over xDS")
    } else {
        (
            &xds::VARIABLES[..],
            "limits come from files, see `--envoy-xds`",
        )
    };
    let set = elsewhere
        .0
        .iter()
        .filter(|name| variables.get(name).is_some());
    ignored.extend(set.map(|name| (*name, elsewhere.1)));
    if variables.get("REDIS_URL").is_none() {
        let set = redis::WITH_URL
            .into_iter()
            .filter(|name| variables.get(name).is_some());
        ignored.extend(set.map(|name| (name, "it needs REDIS_URL")));
    }
    ignored
}
