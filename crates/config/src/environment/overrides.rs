//! Environment variables that override settings of the file.

use super::defaults;
use crate::environment::Environment;
use crate::syntax::{MapEntry, NodeKind, TextSpan, YamlNode, at, spell_out};

/// A variable and the setting that it overrides.
struct VariableOverride {
    variable: &'static str,
    /// The path of the section that has the field; [`TOP`] if it is in none.
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
    setting("TIDEGATE_STORE_URL", "store", "url"),
    setting("TIDEGATE_STORE_REDIS_TOPOLOGY", "store.redis", "topology"),
    setting("TIDEGATE_STORE_REDIS_MASTER", "store.redis", "master"),
    setting("TIDEGATE_STORE_REDIS_USER", "store.redis", "user"),
    VariableOverride {
        instead_of: &["password_file"],
        ..setting("TIDEGATE_STORE_REDIS_PASSWORD", "store.redis", "password")
    },
    VariableOverride {
        instead_of: &["password"],
        ..setting(
            "TIDEGATE_STORE_REDIS_PASSWORD_FILE",
            "store.redis",
            "password_file",
        )
    },
    setting(
        "TIDEGATE_STORE_REDIS_SENTINEL_USER",
        "store.redis",
        "sentinel_user",
    ),
    VariableOverride {
        instead_of: &["sentinel_password_file"],
        ..setting(
            "TIDEGATE_STORE_REDIS_SENTINEL_PASSWORD",
            "store.redis",
            "sentinel_password",
        )
    },
    VariableOverride {
        instead_of: &["sentinel_password"],
        ..setting(
            "TIDEGATE_STORE_REDIS_SENTINEL_PASSWORD_FILE",
            "store.redis",
            "sentinel_password_file",
        )
    },
    setting(
        "TIDEGATE_STORE_REDIS_CONNECTIONS",
        "store.redis",
        "connections",
    ),
    setting(
        "TIDEGATE_STORE_REDIS_CONNECT_TIMEOUT",
        "store.redis",
        "connect_timeout",
    ),
    setting("TIDEGATE_STORE_TIMEOUT", "store", "timeout"),
    setting("TIDEGATE_STORE_REDIS_RETRIES", "store.redis", "retries"),
    setting("TIDEGATE_STORE_REDIS_REQUIRED", "store.redis", "required"),
    setting("TIDEGATE_STORE_ON_FAILURE", "store", "on_failure"),
    setting("TIDEGATE_STORE_LOCAL_SHARE", "store", "local_share"),
    setting("TIDEGATE_STORE_MAX_KEYS", "store", "max_keys"),
    setting("TIDEGATE_STORE_REDIS_PREFIX", "store.redis", "prefix"),
    setting("TIDEGATE_STORE_REDIS_TAG", "store.redis", "tag"),
    setting("TIDEGATE_STORE_REDIS_LAYOUT", "store.redis", "layout"),
    setting("TIDEGATE_STORE_REDIS_TEMPLATE", "store.redis", "template"),
    setting("TIDEGATE_STORE_REDIS_KEY_NAMES", "store.redis", "key_names"),
    setting(
        "TIDEGATE_STORE_REDIS_DENY_CACHE",
        "store.redis",
        "deny_cache",
    ),
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
pub(crate) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    if let NodeKind::Map(sections) = &mut root.kind {
        for section in sections.iter_mut().filter(|it| it.key.text == "store") {
            spell_out(&mut section.value);
        }
    }
    for entry in &OVERRIDES {
        let text = environment.variable(entry.variable);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        let place = TextSpan::Variable(entry.variable);
        let node = node(entry, &text, place);
        // A section that is not a map is reported when it is read.
        if let Some(fields) = section(root, entry.section, place) {
            fields.retain(|field| !entry.instead_of.contains(&field.key.text.as_str()));
            put(fields, entry.field, node);
        }
    }
    defaults::apply(root, environment);
}

/// Returns the fields of the section at `path`, which is created if it is absent; `None` if it is not a map.
fn section<'a>(
    root: &'a mut YamlNode,
    path: &str,
    place: TextSpan,
) -> Option<&'a mut Vec<MapEntry>> {
    if let NodeKind::Null = root.kind {
        root.kind = NodeKind::Map(Vec::new());
    }
    let NodeKind::Map(fields) = &mut root.kind else {
        return None;
    };
    if path == TOP {
        return Some(fields);
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, TOP));
    section(at(fields, first, place, NodeKind::Null), rest, place)
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
