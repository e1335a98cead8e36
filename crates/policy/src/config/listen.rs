//! `listen`: the listeners and their addresses.

use super::address::{self, ListenAddress};
use super::duration;
use super::fault::ConfigFault;
use super::fields::{CONNECTIONS_MAX, LISTEN, LISTENER, TLS};
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::{pem_path, whole};
use super::secret::Secret;
use super::secret_setting::secret;
use super::syntax::NodeKind;
use super::table::FieldReader;
use super::words::PATHS;
use crate::route::Paths;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The default port of the gateway.
const GATEWAY: u16 = 8000;

/// The shortest and the longest maximum age of a connection.
const AGE_MIN: Duration = Duration::from_millis(100);
const AGE_MAX: Duration = Duration::from_hours(365 * 24);

/// The listeners. A listener that is `None` is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The HTTP API. It is also open, on 127.0.0.1:8080, if no other listener is configured.
    pub http: Option<Listener>,
    /// Envoy's rate limit service, and gRPC health.
    pub grpc: Option<Listener>,
    /// The reverse proxy. It is open if and only if the configuration has routes. Default:
    /// 127.0.0.1:8000.
    pub gateway: Option<Listener>,
    /// Health, metrics and administration; always open. Default: 127.0.0.1:8090.
    pub admin: Listener,
    /// True if no address is configured for `admin`. A free port then replaces the default one if that
    /// is taken, so that several instances can run on one machine.
    pub admin_may_move: bool,
    /// The Redis protocol.
    pub resp: Option<Listener>,
    /// The path parsing rules of the gateway.
    pub paths: Paths,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address to listen on.
    pub address: ListenAddress,
    /// The TLS settings, if it uses TLS.
    pub tls: Option<Tls>,
    /// The token that callers must send, if any.
    pub token: Option<Secret>,
    /// The maximum number of connections from one client address. Default: the server's choice.
    pub connections_per_address: Option<usize>,
    /// The maximum age of a connection, if it has one.
    pub age: Option<ConnectionAge>,
}

/// The maximum age of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionAge {
    /// The age at which the server asks the client to close the connection and accepts no new requests.
    pub max: Duration,
    /// The time that requests in flight then have. After it, the server closes the connection.
    pub grace: Duration,
}

impl ConnectionAge {
    /// The default age of gRPC connections, as in envoyproxy/ratelimit.
    const GRPC: Self = Self {
        max: Duration::from_hours(24),
        grace: Self::GRACE,
    };

    const GRACE: Duration = Duration::from_hours(1);

    /// The word for connections of unlimited age.
    const OFF: &str = "off";
}

/// The TLS settings of a listener: paths of PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain.
    pub cert: String,
    /// Its private key.
    pub key: String,
    /// The certificate authorities. Callers must present a certificate that one of these signed.
    pub client_ca: Option<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            http: Some(Listener::local(8080)),
            grpc: None,
            gateway: None,
            admin: Listener::local(8090),
            admin_may_move: true,
            resp: None,
            paths: Paths::default(),
        }
    }
}

impl Listener {
    /// Returns a listener on the loopback address.
    fn local(port: u16) -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port).into(),
            tls: None,
            token: None,
            connections_per_address: None,
            age: None,
        }
    }
}

/// Reads `listen`. With `routes`, the gateway is open.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    routes: Option<&ConfigValue<'_>>,
) -> Listen {
    let default = Listen::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &LISTEN)) else {
        let gateway = routes.map(|_| Listener::local(GATEWAY));
        return Listen {
            http: default.http.filter(|_| gateway.is_none()),
            gateway,
            ..default
        };
    };
    let mut taken = Vec::new();
    let mut paths = None;
    let mut door = |name| {
        let value = fields.get(name)?;
        let listener = listener(reader, &value, &mut paths)?;
        refuse_shared_address(reader, &value, &mut taken, &listener.address);
        Some(listener)
    };
    let http = door("http");
    let grpc = door("grpc");
    let gateway = door("gateway");
    let resp = door("resp");
    let admin = door("admin");
    let gateway = match (gateway, fields.get("gateway"), routes) {
        (None, None, Some(routes)) => Some(unwritten_gateway(reader, routes, &taken)),
        (Some(gateway), Some(value), None) => {
            refuse_without_routes(reader, &value);
            Some(gateway)
        }
        (gateway, _, _) => gateway,
    };
    let is_closed = http.is_none() && grpc.is_none() && gateway.is_none() && resp.is_none();
    Listen {
        // A server needs a listener besides `admin`.
        http: http.or(default.http.filter(|_| is_closed)),
        grpc,
        gateway,
        admin_may_move: admin.is_none(),
        admin: admin.unwrap_or(default.admin),
        resp,
        paths: paths.unwrap_or_default(),
    }
}

/// Returns the gateway's default listener, and reports an address conflict.
fn unwritten_gateway(
    reader: &mut ConfigReader<'_>,
    routes: &ConfigValue<'_>,
    taken: &[(ListenAddress, String)],
) -> Listener {
    let gateway = Listener::local(GATEWAY);
    let clash = taken
        .iter()
        .find(|(other, _)| other.clashes(&gateway.address));
    if let Some((address, other)) = clash {
        let message =
            format!("with `routes` the gateway listens on {address}, and so does `{other}`");
        let help = "say where it listens, for example `gateway: 127.0.0.1:8001` in `listen`";
        reader.error(routes.key_spot(), ConfigFault::new(message).help(help));
    }
    gateway
}

fn refuse_without_routes(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) {
    let fault = ConfigFault::new("the gateway has no `routes`");
    let help = "say where requests go, for example `routes: [{ id: all, upstreams: http://127.0.0.1:9000 }]`";
    reader.error(value.key_spot(), fault.help(help));
}

/// Reads a listener. If it is the gateway's, its path parsing rules go into `paths`.
fn listener(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    paths: &mut Option<Paths>,
) -> Option<Listener> {
    if !matches!(value.node.kind, NodeKind::Map(_)) {
        return Some(Listener {
            address: reader.parse(value, address::parse)?,
            tls: None,
            token: None,
            connections_per_address: None,
            age: default_age(value),
        });
    }
    let fields = reader.fields(value, &LISTENER)?;
    let tls = fields.get("tls").and_then(|value| tls(reader, &value));
    let token = secret(reader, &fields, "token", "token_file");
    let most = |text: &str| {
        let most = whole(text, &(1..=CONNECTIONS_MAX))?;
        Ok(usize::try_from(most).unwrap_or(usize::MAX))
    };
    let connections_per_address = reader.setting(&fields, "connections_per_address", most);
    if let Some(written) = fields.get("paths") {
        if value.path == "listen.gateway" {
            *paths = reader.parse(&written, |word| PATHS.parse(word));
        } else {
            let fault = ConfigFault::new("`paths` is a setting of the gateway");
            reader.error(
                written.key_spot(),
                fault.help("move it to `listen.gateway`, or remove it"),
            );
        }
    }
    let age = connection_age(reader, value, &fields);
    let written = fields.get("address")?;
    Some(Listener {
        address: reader.parse(&written, address::parse)?,
        tls,
        token,
        connections_per_address,
        age,
    })
}

fn default_age(listener: &ConfigValue<'_>) -> Option<ConnectionAge> {
    (listener.path == "listen.grpc").then_some(ConnectionAge::GRPC)
}

/// Reads the maximum age of a listener's connections.
fn connection_age(
    reader: &mut ConfigReader<'_>,
    listener: &ConfigValue<'_>,
    fields: &FieldReader<'_>,
) -> Option<ConnectionAge> {
    let names = ["max_connection_age", "max_connection_age_grace"];
    if listener.path == "listen.resp" {
        for written in names.iter().filter_map(|name| fields.get(name)) {
            let fault = ConfigFault::new("connections of the Redis protocol have no maximum age")
                .help("remove it: Redis clients cannot be told to open a new connection");
            reader.error(written.key_spot(), fault);
        }
        return None;
    }
    let [age, grace] = names;
    let max = reader.setting(fields, age, |text| match text {
        ConnectionAge::OFF => Ok(None),
        text => age_within(text, AGE_MIN).map(Some),
    });
    let grace = reader.setting(fields, grace, |text| age_within(text, Duration::ZERO));
    let default = default_age(listener);
    let max = max.unwrap_or_else(|| default.map(|age| age.max))?;
    Some(ConnectionAge {
        max,
        grace: grace.unwrap_or(ConnectionAge::GRACE),
    })
}

/// Reads an age of at least `least`.
fn age_within(text: &str, least: Duration) -> Result<Duration, ConfigFault> {
    let age = Duration::from_micros(duration::parse(text)?);
    if (least..=AGE_MAX).contains(&age) {
        return Ok(age);
    }
    let message = format!("{} is not from {least:?} to 365d", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `30m`, or `off` for connections of any age"))
}

fn tls(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Tls> {
    let fields = reader.fields(value, &TLS)?;
    let cert = pem_path(reader, &fields, "cert");
    let key = pem_path(reader, &fields, "key");
    let client_ca = pem_path(reader, &fields, "client_ca");
    Some(Tls {
        cert: cert?,
        key: key?,
        client_ca,
    })
}

fn refuse_shared_address(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    taken: &mut Vec<(ListenAddress, String)>,
    address: &ListenAddress,
) {
    let clash = taken.iter().find(|(other, _)| other.clashes(address));
    if let Some((_, other)) = clash {
        let fault = ConfigFault::new(format!(
            "{} listens on {address}, and so does `{other}`",
            value.name()
        ))
        .help("give each listener its own port or socket");
        reader.error(value.spot(), fault);
    }
    taken.push((address.clone(), value.path.clone()));
}
