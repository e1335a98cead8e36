//! Environment variables that override settings of the file.

use super::defaults;
use super::environment::Environment;
use super::store;
use super::syntax::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};

/// A variable and the setting that it overrides.
struct VariableOverride {
    variable: &'static str,
    /// The section of the field; [`TOP`] if it is in none.
    section: &'static str,
    field: &'static str,
    /// Fields with the same meaning, which are removed.
    instead_of: &'static [&'static str],
}

/// The section of top-level fields.
const TOP: &str = "";

const OVERRIDES: [VariableOverride; 33] = [
    setting("TIDEGATE_MODE", TOP, "mode"),
    setting("TIDEGATE_LISTEN_HTTP", "listen", "http"),
    setting("TIDEGATE_LISTEN_GRPC", "listen", "grpc"),
    setting("TIDEGATE_LISTEN_GATEWAY", "listen", "gateway"),
    setting("TIDEGATE_LISTEN_ADMIN", "listen", "admin"),
    setting("TIDEGATE_LISTEN_RESP", "listen", "resp"),
    VariableOverride {
        instead_of: &["urls"],
        ..setting("TIDEGATE_STORE_URL", "store", "url")
    },
    setting("TIDEGATE_STORE_MODE", "store", "mode"),
    setting("TIDEGATE_STORE_MASTER", "store", "master"),
    setting("TIDEGATE_STORE_USER", "store", "user"),
    VariableOverride {
        instead_of: &["password_file"],
        ..setting("TIDEGATE_STORE_PASSWORD", "store", "password")
    },
    VariableOverride {
        instead_of: &["password"],
        ..setting("TIDEGATE_STORE_PASSWORD_FILE", "store", "password_file")
    },
    setting("TIDEGATE_STORE_SENTINEL_USER", "store", "sentinel_user"),
    VariableOverride {
        instead_of: &["sentinel_password_file"],
        ..setting(
            "TIDEGATE_STORE_SENTINEL_PASSWORD",
            "store",
            "sentinel_password",
        )
    },
    VariableOverride {
        instead_of: &["sentinel_password"],
        ..setting(
            "TIDEGATE_STORE_SENTINEL_PASSWORD_FILE",
            "store",
            "sentinel_password_file",
        )
    },
    setting("TIDEGATE_STORE_CONNECTIONS", "store", "connections"),
    setting("TIDEGATE_STORE_CONNECT_TIMEOUT", "store", "connect_timeout"),
    setting("TIDEGATE_STORE_TIMEOUT", "store", "timeout"),
    setting("TIDEGATE_STORE_RETRIES", "store", "retries"),
    setting(
        "TIDEGATE_STORE_REQUIRED_AT_START",
        "store",
        "required_at_start",
    ),
    setting("TIDEGATE_STORE_ON_FAILURE", "store", "on_failure"),
    setting("TIDEGATE_STORE_LOCAL_SHARE", "store", "local_share"),
    setting("TIDEGATE_STORE_MAX_KEYS", "store", "max_keys"),
    setting("TIDEGATE_STORE_PREFIX", "store", "prefix"),
    setting("TIDEGATE_STORE_TAG", "store", "tag"),
    setting("TIDEGATE_STORE_LAYOUT", "store", "layout"),
    setting("TIDEGATE_STORE_TEMPLATE", "store", "template"),
    setting("TIDEGATE_STORE_KEY_NAMES", "store", "key_names"),
    setting("TIDEGATE_STORE_DENY_CACHE", "store", "deny_cache"),
    VariableOverride {
        instead_of: &["key_secret_file"],
        ..setting("TIDEGATE_STORE_KEY_SECRET", "store", "key_secret")
    },
    VariableOverride {
        instead_of: &["key_secret"],
        ..setting("TIDEGATE_STORE_KEY_SECRET_FILE", "store", "key_secret_file")
    },
    setting(
        "TIDEGATE_CLIENT_TRUSTED_PROXIES",
        "client",
        "trusted_proxies",
    ),
    setting("TIDEGATE_CLIENT_IPV6_PREFIX", "client", "ipv6_prefix"),
];

const fn setting(
    variable: &'static str,
    section: &'static str,
    field: &'static str,
) -> VariableOverride {
    VariableOverride {
        variable,
        section,
        field,
        instead_of: &[],
    }
}

/// Returns the variables and the settings that they override, such as `store.timeout`.
pub fn overrides() -> impl Iterator<Item = (&'static str, String)> {
    let path = |entry: &VariableOverride| match entry.section {
        TOP => entry.field.to_owned(),
        section => format!("{section}.{}", entry.field),
    };
    OVERRIDES
        .iter()
        .map(move |entry| (entry.variable, path(entry)))
}

/// Puts the values of variables into the tree, so that the same rules read them, then the environment's
/// defaults. An empty variable counts as unset.
pub(super) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    if let NodeKind::Map(sections) = &mut root.kind {
        for section in sections.iter_mut().filter(|it| it.key.text == "store") {
            store::spell_out(&mut section.value);
        }
    }
    for entry in &OVERRIDES {
        let text = environment.variable(entry.variable);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        let place = TextSpan::Variable(entry.variable);
        let node = node(entry, &text, place);
        let NodeKind::Map(sections) = &mut root.kind else {
            return;
        };
        if entry.section == TOP {
            put(sections, entry.field, node);
            continue;
        }
        let empty = NodeKind::Map(Vec::new());
        let section = at(sections, entry.section, place, empty);
        if let NodeKind::Null = section.kind {
            section.kind = NodeKind::Map(Vec::new());
        }
        // A section that is not a map is reported when it is read.
        if let NodeKind::Map(fields) = &mut section.kind {
            fields.retain(|field| !entry.instead_of.contains(&field.key.text.as_str()));
            put(fields, entry.field, node);
        }
    }
    defaults::apply(root, environment);
}

/// Returns the value of a variable as a node. Lists are separated by commas.
fn node(entry: &VariableOverride, text: &str, place: TextSpan) -> YamlNode {
    let scalar = |text: &str| YamlNode {
        place,
        kind: NodeKind::Text(text.trim().to_owned()),
    };
    if entry.field == "trusted_proxies" {
        let items = text.split(',').map(scalar).collect();
        return YamlNode {
            place,
            kind: NodeKind::List(items),
        };
    }
    scalar(text)
}

/// Replaces a field. Of a listener written as a map, it replaces only the address.
fn put(fields: &mut Vec<MapEntry>, name: &'static str, node: YamlNode) {
    let place = node.place;
    let field = at(fields, name, place, NodeKind::Null);
    match &mut field.kind {
        NodeKind::Map(inner) => *at(inner, "address", place, NodeKind::Null) = node,
        _ => *field = node,
    }
}

/// Returns the value of the field `name`, inserting `kind` if it is missing.
pub(super) fn at<'a>(
    entries: &'a mut Vec<MapEntry>,
    name: &str,
    place: TextSpan,
    kind: NodeKind,
) -> &'a mut YamlNode {
    let found = entries.iter().position(|entry| entry.key.text == name);
    let index = found.unwrap_or_else(|| {
        let key = MapKey {
            text: name.to_owned(),
            place,
        };
        let value = YamlNode { place, kind };
        entries.push(MapEntry { key, value });
        entries.len().saturating_sub(1)
    });
    #[expect(clippy::indexing_slicing, reason = "found, or just pushed")]
    &mut entries[index].value
}
