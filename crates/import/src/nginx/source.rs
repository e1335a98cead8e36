//! `map` and `geo`, as far as they decide whether a request is limited: an empty key is not counted.

use super::key::{self, NginxKey, header_name};
use super::syntax::NginxDirective;
use crate::draft::ConditionDraft;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The variables that `map` and `geo` define, by name.
pub(super) type NginxVariables<'d> = BTreeMap<String, &'d NginxDirective>;

/// The requests that a zone counts, and its key.
#[derive(Clone, Debug, Default)]
pub(super) struct NginxSelection {
    pub(super) key: NginxKey,
    /// The requests that it counts; all if there are none.
    pub(super) only: Vec<ConditionDraft>,
    /// The requests that it does not count.
    pub(super) except: Vec<ConditionDraft>,
    /// True if requests without the header of the key count by address.
    pub(super) or_address: bool,
}

/// An unsupported key, and the reason.
#[derive(Debug)]
pub(super) struct UnsupportedKey {
    pub(super) message: String,
    pub(super) help: &'static str,
}

const HELP: &str = "use `$binary_remote_addr`, `$host`, `$uri`, `$http_NAME`, `$arg_NAME` or `$cookie_NAME`, or a `map` or `geo` that empties the key";

fn unsupported(message: impl Into<String>, help: &'static str) -> UnsupportedKey {
    UnsupportedKey {
        message: message.into(),
        help,
    }
}

/// Reads the key of a zone.
pub(super) fn select(
    text: &str,
    defined: &NginxVariables<'_>,
) -> Result<NginxSelection, UnsupportedKey> {
    let names = key::variables(text).unwrap_or_default();
    if let [name] = names.as_slice() {
        let is_alone = text == format!("${name}") || text == format!("${{{name}}}");
        if let (true, Some(of)) = (is_alone, defined.get(name)) {
            return if of.name == "map" {
                mapped(of, defined)
            } else {
                let message = format!("the values of `geo ${name}` cannot be a key");
                Err(unsupported(
                    message,
                    "map them to a key: `map $geo $key { 0 \"\"; 1 $binary_remote_addr; }`",
                ))
            };
        }
    }
    let key = key::read(text)
        .map_err(|variable| unsupported(format!("`{variable}` in a key is not supported"), HELP))?;
    Ok(NginxSelection {
        key,
        ..NginxSelection::default()
    })
}

/// The values of a `map` or `geo`: its default, and the others by the text that they compare with.
struct NginxTable<'d> {
    default: &'d str,
    rows: Vec<(&'d str, &'d str)>,
}

fn table(of: &NginxDirective) -> NginxTable<'_> {
    let mut table = NginxTable {
        default: "",
        rows: Vec::new(),
    };
    for row in of.children() {
        match row.name.as_str() {
            "default" => table.default = row.first(),
            "hostnames" | "volatile" | "ranges" if row.words.is_empty() => {}
            name => table
                .rows
                .push((name.strip_prefix('\\').unwrap_or(name), row.first())),
        }
    }
    table
}

/// Reads the key that a `map` results in.
fn mapped(
    of: &NginxDirective,
    defined: &NginxVariables<'_>,
) -> Result<NginxSelection, UnsupportedKey> {
    let table = table(of);
    let keys = table.rows.iter().map(|(_, value)| *value);
    let mut keys: Vec<&str> = keys
        .chain([table.default])
        .filter(|value| !value.is_empty())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let source = of.first().trim_start_matches('$').trim_matches(['{', '}']);
    if let Some(selection) = by_header_or_address(source, &table) {
        return Ok(selection);
    }
    let [key] = keys.as_slice() else {
        let message = format!("`map` with {} different keys is not supported", keys.len());
        return Err(unsupported(message, "write a zone for each key"));
    };
    let mut selection = select(key, &NginxVariables::new())?;
    let is_counted = |value: &str| !value.is_empty();
    let (listed, values): (bool, Vec<&str>) = {
        let by_default = is_counted(table.default);
        let rows = table.rows.iter();
        let rows = rows.filter(|(_, value)| is_counted(value) != by_default);
        (!by_default, rows.map(|(text, _)| *text).collect())
    };
    let conditions = conditions(source, &values, defined)?;
    match conditions {
        // The other way round: requests with any value of the header.
        ListedRequests::Others(conditions) if listed => selection.except = conditions,
        ListedRequests::Others(conditions) => selection.only = conditions,
        ListedRequests::These(conditions) if listed => selection.only = conditions,
        ListedRequests::These(conditions) => selection.except = conditions,
    }
    Ok(selection)
}

/// Reads `map $http_x_api_key $key { default $http_x_api_key; "" $binary_remote_addr; }`.
fn by_header_or_address(source: &str, table: &NginxTable<'_>) -> Option<NginxSelection> {
    let header = source.strip_prefix("http_")?;
    let [("", address)] = table.rows.as_slice() else {
        return None;
    };
    let is_address = matches!(*address, "$binary_remote_addr" | "$remote_addr");
    let key = key::read(table.default).ok()?;
    let is_header = key.parts == [format!("header:{}", header_name(header))];
    (is_address && is_header).then_some(NginxSelection {
        key,
        or_address: true,
        ..NginxSelection::default()
    })
}

/// The requests with a value of a list.
enum ListedRequests {
    These(Vec<ConditionDraft>),
    /// All requests but these.
    Others(Vec<ConditionDraft>),
}

/// Returns the requests for which `source` has one of these values.
fn conditions(
    source: &str,
    values: &[&str],
    defined: &NginxVariables<'_>,
) -> Result<ListedRequests, UnsupportedKey> {
    let texts = || values.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    if let Some(geo) = defined.get(source).filter(|it| it.name == "geo") {
        return networks(geo, values);
    }
    if matches!(source, "remote_addr") {
        let condition = ConditionDraft {
            clients: texts(),
            ..ConditionDraft::default()
        };
        return Ok(ListedRequests::These(some(condition, values)));
    }
    if values.iter().any(|value| value.starts_with('~')) {
        let message = format!("regular expressions in `map ${source}` are not supported");
        return Err(unsupported(
            message,
            "list the values, or match requests by `location`",
        ));
    }
    let condition = match source {
        "request_method" => ConditionDraft {
            methods: texts(),
            ..ConditionDraft::default()
        },
        "host" | "http_host" => ConditionDraft {
            hosts: texts(),
            ..ConditionDraft::default()
        },
        "uri" | "document_uri" => {
            let paths = values.iter().map(|path| ConditionDraft {
                path: Some(format!("{}$", path.trim_end_matches('/'))),
                ..ConditionDraft::default()
            });
            return Ok(ListedRequests::These(paths.collect()));
        }
        _ => {
            let Some(header) = source.strip_prefix("http_") else {
                let message = format!("`map ${source}` is not supported as the key of a zone");
                return Err(unsupported(
                    message,
                    "use `geo`, `$request_method`, `$host`, `$uri`, `$remote_addr` or `$http_NAME`",
                ));
            };
            return headers(&header_name(header), values);
        }
    };
    Ok(ListedRequests::These(some(condition, values)))
}

fn some(condition: ConditionDraft, values: &[&str]) -> Vec<ConditionDraft> {
    if values.is_empty() {
        Vec::new()
    } else {
        vec![condition]
    }
}

fn headers(name: &str, values: &[&str]) -> Result<ListedRequests, UnsupportedKey> {
    let with = |value: &str| ConditionDraft {
        header: Some((name.to_owned(), value.to_owned())),
        ..ConditionDraft::default()
    };
    if values == [""] {
        // A condition cannot require that a header is absent: the others have any value of it.
        return Ok(ListedRequests::Others(vec![with("")]));
    }
    if values.contains(&"") {
        let message =
            format!("`map` with an empty value of `{name}` next to others is not supported");
        return Err(unsupported(message, "map the empty value alone"));
    }
    let values = values.iter().map(|value| with(value));
    Ok(ListedRequests::These(values.collect()))
}

/// Returns the clients for which a `geo` has one of these values.
fn networks(geo: &NginxDirective, values: &[&str]) -> Result<ListedRequests, UnsupportedKey> {
    if geo.words.len() > 1 {
        let message = "`geo` of another variable than the client address is not supported";
        return Err(unsupported(message, "use `geo $name { … }`"));
    }
    let is_unsupported =
        |it: &&NginxDirective| matches!(it.name.as_str(), "proxy" | "proxy_recursive" | "delete");
    if let Some(it) = geo.children().iter().find(is_unsupported) {
        let message = format!("`{}` in `geo` is not supported", it.written());
        return Err(unsupported(
            message,
            "trust proxies with `set_real_ip_from`, and list only the networks that apply",
        ));
    }
    let table = table(geo);
    let is_listed = |value: &str| values.contains(&value);
    let others = is_listed(table.default);
    let mut found: Vec<String> = Vec::new();
    let mut rest: Vec<IpNet> = Vec::new();
    for (text, value) in &table.rows {
        let Some(network) = network(text) else {
            let message = format!("`{text}` in `geo` is not an address or a network");
            return Err(unsupported(
                message,
                "write networks, such as 10.0.0.0/8; ranges are not supported",
            ));
        };
        if is_listed(value) == others {
            rest.push(network);
        } else {
            found.push((*text).to_owned());
        }
    }
    let inside = |inner: &IpNet| {
        let outer = found.iter().filter_map(|text| network(text));
        outer.into_iter().any(|outer| outer.contains(inner))
    };
    if rest.iter().any(inside) {
        let message = "`geo` with a network inside a network of another value is not supported";
        return Err(unsupported(message, "list separate networks"));
    }
    let condition = ConditionDraft {
        clients: found.clone(),
        ..ConditionDraft::default()
    };
    let conditions = if found.is_empty() {
        Vec::new()
    } else {
        vec![condition]
    };
    Ok(if others {
        ListedRequests::Others(conditions)
    } else {
        ListedRequests::These(conditions)
    })
}

fn network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().ok();
    network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}
