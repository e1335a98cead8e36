//! Default settings from an environment, for fields that the configuration does not set.

use crate::environment::{Environment, Setting};
use crate::syntax::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode, at};
use std::mem;

/// Adds the environment's settings to the tree. Call it after Tidegate's own variables are applied.
///
/// If the configuration sets the URL of a store, `traces` or `statsd`, none of the environment's
/// settings for that section apply: they belong to another server.
pub(crate) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    let sections = [
        ("store.", has_store(root)),
        ("traces.", root.get("traces").is_some()),
        ("statsd.", root.get("statsd").is_some()),
    ];
    for setting in environment.defaults() {
        let mut sections = sections.iter();
        let is_elsewhere = sections.any(|(name, is_set)| *is_set && setting.path.starts_with(name));
        if is_elsewhere || lacks_listener(root, setting.path) {
            continue;
        }
        if put(root, setting.path, setting) {
            for variable in &setting.variables {
                environment.took(variable);
            }
        }
    }
}

fn has_store(root: &YamlNode) -> bool {
    let store = root.get("store");
    store.is_some_and(|store| {
        let url = store.get("url");
        url.is_some() || store.as_text().is_some()
    })
}

/// Returns true for a setting of a listener that is not configured.
fn lacks_listener(root: &YamlNode, path: &str) -> bool {
    in_listener(path).is_some_and(|(listener, _)| {
        let listen = root.get("listen");
        listen.and_then(|listen| listen.get(listener)).is_none()
    })
}

/// Returns the listener that a setting belongs to, and the path of the setting in it.
fn in_listener(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("listen.")?.split_once('.')
}

/// Puts a setting at `path` below `node` and creates the maps on the way. Returns true if the setting
/// applies.
fn put(node: &mut YamlNode, path: &'static str, setting: &Setting) -> bool {
    let place = TextSpan::Variable(setting.variables.first().copied().unwrap_or_default());
    match node.kind {
        NodeKind::Null => node.kind = NodeKind::Map(Vec::new()),
        NodeKind::Text(_) if in_listener(setting.path).is_some_and(|(_, field)| field == path) => {
            open(node, place);
        }
        _ => {}
    }
    // A value of another kind is reported when it is read.
    let NodeKind::Map(fields) = &mut node.kind else {
        return false;
    };
    if let Some((section, rest)) = path.split_once('.') {
        let section = at(fields, section, place, NodeKind::Map(Vec::new()));
        return put(section, rest, setting);
    }
    let mut field = at(fields, path, place, NodeKind::Null);
    if let Some(key) = &setting.key {
        if let NodeKind::Null = field.kind {
            field.kind = NodeKind::Map(Vec::new());
        }
        let NodeKind::Map(entries) = &mut field.kind else {
            return false;
        };
        field = at(entries, key, place, NodeKind::Null);
    }
    let is_free = match field.place {
        _ if matches!(field.kind, NodeKind::Null) => true,
        TextSpan::File { .. } => setting.replaces_text,
        TextSpan::Variable(_) => false,
    };
    if is_free {
        *field = YamlNode {
            place,
            kind: NodeKind::Text(setting.text.clone()),
        };
    }
    is_free
}

/// Turns a listener that is written as an address into a map.
fn open(listener: &mut YamlNode, place: TextSpan) {
    let address = YamlNode {
        place: listener.place,
        kind: mem::replace(&mut listener.kind, NodeKind::Null),
    };
    let text = "address".to_owned();
    listener.kind = NodeKind::Map(vec![MapEntry {
        key: MapKey { text, place },
        value: address,
    }]);
}
