//! Settings that an environment variable overrides, whatever the file says.

use super::defaults;
use super::environment::Environment;
use super::store;
use super::syntax::{Entry, Key, Kind, Node, Place};

/// A variable and the setting that it overrides.
struct Override {
    variable: &'static str,
    /// The section that the field is in; [`TOP`] where it is in none.
    section: &'static str,
    field: &'static str,
    /// Fields that mean the same and give way.
    instead_of: &'static [&'static str],
}

/// Section of fields that stand at the top of the configuration.
const TOP: &str = "";

const OVERRIDES: [Override; 33] = [
    setting("TIDEGATE_MODE", TOP, "mode"),
    setting("TIDEGATE_LISTEN_HTTP", "listen", "http"),
    setting("TIDEGATE_LISTEN_GRPC", "listen", "grpc"),
    setting("TIDEGATE_LISTEN_GATEWAY", "listen", "gateway"),
    setting("TIDEGATE_LISTEN_ADMIN", "listen", "admin"),
    setting("TIDEGATE_LISTEN_RESP", "listen", "resp"),
    Override {
        instead_of: &["urls"],
        ..setting("TIDEGATE_STORE_URL", "store", "url")
    },
    setting("TIDEGATE_STORE_MODE", "store", "mode"),
    setting("TIDEGATE_STORE_MASTER", "store", "master"),
    setting("TIDEGATE_STORE_USER", "store", "user"),
    Override {
        instead_of: &["password_file"],
        ..setting("TIDEGATE_STORE_PASSWORD", "store", "password")
    },
    Override {
        instead_of: &["password"],
        ..setting("TIDEGATE_STORE_PASSWORD_FILE", "store", "password_file")
    },
    setting("TIDEGATE_STORE_SENTINEL_USER", "store", "sentinel_user"),
    Override {
        instead_of: &["sentinel_password_file"],
        ..setting(
            "TIDEGATE_STORE_SENTINEL_PASSWORD",
            "store",
            "sentinel_password",
        )
    },
    Override {
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
    Override {
        instead_of: &["key_secret_file"],
        ..setting("TIDEGATE_STORE_KEY_SECRET", "store", "key_secret")
    },
    Override {
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

const fn setting(variable: &'static str, section: &'static str, field: &'static str) -> Override {
    Override {
        variable,
        section,
        field,
        instead_of: &[],
    }
}

/// The variables and the settings that they override, such as `store.timeout`.
pub fn overrides() -> impl Iterator<Item = (&'static str, String)> {
    let path = |entry: &Override| match entry.section {
        TOP => entry.field.to_owned(),
        section => format!("{section}.{}", entry.field),
    };
    OVERRIDES
        .iter()
        .map(move |entry| (entry.variable, path(entry)))
}

/// Puts what variables say into the tree, so that the same rules read it; then the environment's
/// defaults. A variable that is set to nothing counts as not set.
pub(super) fn apply(root: &mut Node, environment: &dyn Environment) {
    if let Kind::Map(sections) = &mut root.kind {
        for section in sections.iter_mut().filter(|it| it.key.text == "store") {
            store::spell_out(&mut section.value);
        }
    }
    for entry in &OVERRIDES {
        let text = environment.variable(entry.variable);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        let place = Place::Variable(entry.variable);
        let node = node(entry, &text, place);
        let Kind::Map(sections) = &mut root.kind else {
            return;
        };
        if entry.section == TOP {
            put(sections, entry.field, node);
            continue;
        }
        let empty = Kind::Map(Vec::new());
        let section = at(sections, entry.section, place, empty);
        if let Kind::Null = section.kind {
            section.kind = Kind::Map(Vec::new());
        }
        // A section that is not a map is reported when it is read.
        if let Kind::Map(fields) = &mut section.kind {
            fields.retain(|field| !entry.instead_of.contains(&field.key.text.as_str()));
            put(fields, entry.field, node);
        }
    }
    defaults::apply(root, environment);
}

/// What a variable says. Lists are written with commas.
fn node(entry: &Override, text: &str, place: Place) -> Node {
    let scalar = |text: &str| Node {
        place,
        kind: Kind::Text(text.trim().to_owned()),
    };
    if entry.field == "trusted_proxies" {
        let items = text.split(',').map(scalar).collect();
        return Node {
            place,
            kind: Kind::List(items),
        };
    }
    scalar(text)
}

/// Replaces a field; of a door with more than an address, only the address.
fn put(fields: &mut Vec<Entry>, name: &'static str, node: Node) {
    let place = node.place;
    let field = at(fields, name, place, Kind::Null);
    match &mut field.kind {
        Kind::Map(inner) => *at(inner, "address", place, Kind::Null) = node,
        _ => *field = node,
    }
}

/// The value under `name`, which begins as `kind` if it is not there yet.
pub(super) fn at<'a>(
    entries: &'a mut Vec<Entry>,
    name: &str,
    place: Place,
    kind: Kind,
) -> &'a mut Node {
    let found = entries.iter().position(|entry| entry.key.text == name);
    let index = found.unwrap_or_else(|| {
        let key = Key {
            text: name.to_owned(),
            place,
        };
        let value = Node { place, kind };
        entries.push(Entry { key, value });
        entries.len().saturating_sub(1)
    });
    #[expect(clippy::indexing_slicing, reason = "found, or just pushed")]
    &mut entries[index].value
}
