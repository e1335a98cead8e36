//! `listen`: the listeners and their addresses.

use crate::environment::{Environment, overrides};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{pem_path, whole};
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::PATHS;
use crate::syntax::{NodeKind, YamlNode};
use crate::tables::tls::SERVER_TLS;
use crate::tables::{CONNECTIONS_MAX, LISTEN, LISTENER};
use std::time::Duration;
use tidegate_policy::listen::{ConnectionAge, Listen, ListenAddress, Listener, Tls, address};
use tidegate_policy::route::Paths;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The default port of the gateway.
const GATEWAY: u16 = 8000;

/// The shortest and the longest maximum age of a connection.
const AGE_MIN: Duration = Duration::from_millis(100);
const AGE_MAX: Duration = Duration::from_secs(31_536_000);

/// The word for connections of unlimited age.
const AGE_OFF: &str = "off";

/// Reads `listen`. With `routes`, the gateway is open.
pub(crate) fn read(
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
    let mut listener = |name| {
        let value = fields.get(name)?;
        let listener = listener(reader, &value, &mut paths)?;
        refuse_shared_address(reader, &value, &mut taken, &listener.address);
        Some(listener)
    };
    let http = listener("http");
    let grpc = listener("grpc");
    let gateway = listener("gateway");
    let resp = listener("resp");
    let admin = listener("admin");
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

/// Reads only the admin listener, from a configuration that is not complete yet.
pub(crate) fn read_admin(
    reader: &mut ConfigReader<'_>,
    mut tree: YamlNode,
    environment: &dyn Environment,
) -> Listener {
    overrides::apply(&mut tree, environment);
    let section = match &tree.kind {
        NodeKind::Map(entries) => entries.iter().find(|entry| entry.key.text == "listen"),
        // The wrong kind is reported when the whole configuration is read.
        _ => None,
    };
    let admin = section.and_then(|entry| {
        let value = ConfigValue::root(&tree).child(&entry.key, &entry.value);
        let fields = reader.fields(&value, &LISTEN)?;
        listener(reader, &fields.get("admin")?, &mut None)
    });
    admin.unwrap_or_else(|| Listen::default().admin)
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
        let message = format!("the gateway and `{other}` both listen on {address}");
        let help = "set another address, for example `gateway: 127.0.0.1:8001` in `listen`";
        reader.error(routes.key_spot(), ConfigFault::new(message).help(help));
    }
    gateway
}

fn refuse_without_routes(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) {
    let fault = ConfigFault::new("the gateway has no `routes`");
    let help = "add one, for example `routes: [{ name: all, upstreams: http://127.0.0.1:9000 }]`";
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
                .help("remove it: the Redis protocol cannot ask clients to reconnect");
            reader.error(written.key_spot(), fault);
        }
        return None;
    }
    let [age, grace] = names;
    let max = reader.setting(fields, age, |text| match text {
        AGE_OFF => Ok(None),
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
    let fields = reader.fields(value, &SERVER_TLS)?;
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
            "{} and `{other}` both listen on {address}",
            value.name()
        ))
        .help("give each listener its own port or socket");
        reader.error(value.spot(), fault);
    }
    taken.push((address.clone(), value.path.clone()));
}
