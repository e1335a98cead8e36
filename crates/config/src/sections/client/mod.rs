//! `client`: how a client is identified.

mod cost;
mod invented;
mod jwt;
mod source;
mod unsourced;

use super::key::attribute_name;
use crate::environment::Environment;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{network, whole};
use crate::language::table::FieldReader;
use crate::language::words::ADDRESS;
use crate::problem::ConfigErrors;
use crate::source::PolicySource;
use crate::syntax::{self, NodeKind};
use crate::tables::client::ATTRIBUTES_MAX;
use crate::tables::client::CLIENT;
use invented::warn_about_invented;
use ipnet::IpNet;
use source::IdentitySources;
use std::sync::Arc;
use tidegate_policy::client::{AddressHeader, Client, IdentitySource, Trust};
use tidegate_policy::policy::Policy;
use tidegate_policy::text::ConfigFault;
use unsourced::warn_about_unsourced;
pub(crate) use unsourced::{children, field};

/// Warns about limits that count by identities that have no source, or that clients can invent.
/// `around` holds `guards` and the config sources.
pub(crate) fn warn(
    reader: &mut ConfigReader<'_>,
    (value, policies): (&ConfigValue<'_>, &[Policy]),
    client: &Client,
    around: &(Option<ConfigValue<'_>>, &[PolicySource]),
) {
    let (guards, sources) = around;
    let has_fluxgate = sources.iter().any(PolicySource::is_fluxgate);
    warn_about_unsourced(reader, value, guards.as_ref(), client, has_fluxgate);
    warn_about_invented(reader, value, policies, client);
}

/// Reads the settings of `client` on their own, outside a configuration.
pub(crate) fn parse_alone(
    text: &str,
    name: &str,
    environment: &dyn Environment,
) -> Result<Client, ConfigErrors> {
    let mut reader = ConfigReader::new(name, text, environment);
    let nothing = ConfigFault::new("`client` is empty");
    let nothing = nothing.help("write at least one setting, for example `ipv6_prefix: 64`");
    let (tree, faults) = syntax::read(text, nothing);
    for (place, fault) in faults {
        reader.error((place, String::new()), fault);
    }
    let client = read(&mut reader, tree.as_ref().map(ConfigValue::root).as_ref());
    reader.finish()?;
    Ok(client)
}

/// Reads `client`.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: Option<&ConfigValue<'_>>) -> Client {
    let default = Client::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &CLIENT)) else {
        return default;
    };
    let trusted_proxies = fields
        .get("trusted_proxies")
        .map(|value| match &value.node.kind {
            // An empty list means that no proxy is trusted.
            NodeKind::List(items) if items.is_empty() => Vec::new(),
            _ => {
                let networks = networks(reader, &value);
                warn_if_everybody_is_trusted(reader, &value, &networks);
                networks
            }
        });
    let ipv6_prefix = reader.setting(&fields, "ipv6_prefix", |text| whole(text, &(1..=128)));
    let ipv6_prefix = ipv6_prefix.and_then(|bits| u8::try_from(bits).ok());
    let address = fields.get("address").map(|value| address(reader, &value));
    let mut sources = IdentitySources::default();
    let user = sources.of(reader, &fields, "user", Trust::Proxies);
    let api_key = match fields.get("api_key") {
        // An empty list means that there are no API keys.
        Some(value) if matches!(&value.node.kind, NodeKind::List(items) if items.is_empty()) => {
            Vec::new()
        }
        Some(_) => sources.of(reader, &fields, "api_key", Trust::Anyone),
        None => default.api_key,
    };
    let attributes = attributes(reader, &fields, &mut sources);
    let jwt = jwt::read(reader, &fields, &sources);
    Client {
        trusted_proxies: trusted_proxies.unwrap_or(default.trusted_proxies),
        ipv6_prefix: ipv6_prefix.unwrap_or(default.ipv6_prefix),
        address: address.unwrap_or(default.address),
        user,
        api_key,
        attributes,
        cost: cost::read(reader, &fields),
        jwt: jwt.map(Arc::new),
    }
}

fn warn_if_everybody_is_trusted(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    networks: &[IpNet],
) {
    if networks.iter().any(|network| network.prefix_len() == 0) {
        let fault = ConfigFault::new("all addresses are trusted: any client can spoof its IP")
            .help("list only the addresses of your proxies");
        reader.warn(value.spot(), fault);
    }
}

/// Reads one address or network, or a list of them.
pub(crate) fn networks(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<IpNet> {
    let items = reader.one_or_many(value);
    items
        .iter()
        .filter_map(|item| reader.parse(item, network))
        .collect()
}

/// Reads the headers that carry the client address, each at most once.
fn address(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<AddressHeader> {
    let mut headers = Vec::new();
    for item in reader.one_or_many(value) {
        let header = reader.parse(&item, |text| ADDRESS.parse(&text.to_ascii_lowercase()));
        match header {
            Some(header) if headers.contains(&header) => {
                let fault = ConfigFault::new("duplicate header");
                reader.error(item.spot(), fault.help("remove it"));
            }
            header => headers.extend(header),
        }
    }
    headers
}

/// Reads `consumer`, `token` and `attributes`. All of them become attributes.
fn attributes(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    sources: &mut IdentitySources,
) -> Vec<(String, Vec<IdentitySource>)> {
    let mut attributes: Vec<(String, Vec<IdentitySource>)> = Vec::new();
    for (name, trust) in [("consumer", Trust::Proxies), ("token", Trust::Anyone)] {
        if fields.get(name).is_some() {
            let found = sources.of(reader, fields, name, trust);
            attributes.push((name.to_owned(), found));
        }
    }
    let Some(value) = fields.get("attributes") else {
        return attributes;
    };
    let NodeKind::Map(entries) = &value.node.kind else {
        let expected = "a map of names to sources, for example { project: { segment: 2 } }";
        reader.refuse_kind(&value, expected);
        return attributes;
    };
    if entries.len() > ATTRIBUTES_MAX {
        let fault = ConfigFault::new(format!("there are at most {ATTRIBUTES_MAX} attributes"));
        reader.error(value.key_spot(), fault);
        return attributes;
    }
    for entry in entries {
        let child = value.child(&entry.key, &entry.value);
        let found = sources.all(reader, &child, &entry.key.text, Trust::Anyone);
        match attribute_name(&entry.key.text) {
            Ok(name) if attributes.iter().any(|(other, _)| *other == name) => {
                let fault = ConfigFault::new(format!("duplicate attribute `{name}`"));
                let help = format!("`client.{name}` also sets it; remove one of the two");
                reader.error(child.key_spot(), fault.help(help));
            }
            Ok(name) => attributes.push((name, found)),
            Err(fault) => reader.error(child.key_spot(), fault),
        }
    }
    attributes
}
