//! The middlewares and routers of a file: the file provider's YAML or JSON, labels of Docker, and manifests
//! of Kubernetes.
//!
//! All three name the same settings with other spellings, so each item becomes a flat list of fields: the
//! path in lower case, as in a label, and the values. What a field means is decided by its reader.

use crate::document::ImportedFile;
use tidegate_policy::text::{ConfigFault, NodeKind, TextSpan, YamlNode};

/// The longest path of a setting.
const DEPTH_MAX: usize = 16;

/// A middleware or a router.
#[derive(Debug)]
pub(super) struct TraefikItem {
    pub(super) name: String,
    pub(super) place: TextSpan,
    pub(super) fields: Vec<TraefikField>,
}

/// A field of an item.
#[derive(Debug)]
pub(super) struct TraefikField {
    /// Its names in lower case, joined by dots.
    pub(super) name: String,
    pub(super) values: Vec<String>,
    pub(super) place: TextSpan,
}

/// All items of a file.
#[derive(Debug, Default)]
pub(super) struct TraefikItems {
    pub(super) middlewares: Vec<TraefikItem>,
    pub(super) routers: Vec<TraefikItem>,
}

impl TraefikItem {
    fn new(name: &str, place: TextSpan) -> Self {
        Self {
            name: name.to_owned(),
            place,
            fields: Vec::new(),
        }
    }

    /// Returns a field by its name in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&TraefikField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the only value of a field.
    pub(super) fn text(&self, name: &str) -> Option<(&str, TextSpan)> {
        let field = self.get(name)?;
        Some((field.values.first()?, field.place))
    }
}

/// Adds the items of a document. Returns false if it has none.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    tree: &YamlNode,
    into: &mut TraefikItems,
) -> bool {
    let before = (into.middlewares.len(), into.routers.len());
    match text(tree, &["kind"]) {
        Some("Middleware") => middleware(tree, into),
        Some("IngressRoute") => ingress(document, tree, into),
        _ => walk(tree, &mut Vec::new(), into),
    }
    before != (into.middlewares.len(), into.routers.len())
}

/// Adds `spec` of a `Middleware`.
fn middleware(tree: &YamlNode, into: &mut TraefikItems) {
    let name = text(tree, &["metadata", "name"]).unwrap_or("middleware");
    if let Some(spec) = child(tree, "spec") {
        let mut item = TraefikItem::new(name, spec.place);
        fields(spec, &mut Vec::new(), &mut item);
        into.middlewares.push(item);
    }
}

/// Adds the routes of an `IngressRoute`.
fn ingress(document: &mut ImportedFile<'_>, tree: &YamlNode, into: &mut TraefikItems) {
    let name = text(tree, &["metadata", "name"]).unwrap_or("route");
    let routes = child(tree, "spec").and_then(|spec| child(spec, "routes"));
    let Some(NodeKind::List(routes)) = routes.map(|it| &it.kind) else {
        let fault = ConfigFault::new("this `IngressRoute` has no `spec.routes`");
        document.error((tree.place, String::new()), fault);
        return;
    };
    for (at, route) in routes.iter().enumerate() {
        let name = match routes.len() {
            1 => name.to_owned(),
            _ => format!("{name}-{}", at + 1),
        };
        let mut item = TraefikItem::new(&name, route.place);
        for (from, to) in [("match", "rule"), ("priority", "priority")] {
            if let Some(node) = child(route, from) {
                item.fields.push(field(to, node));
            }
        }
        for (from, to) in [("entryPoints", "entrypoints"), ("tls", "tls")] {
            if let Some(node) = child(tree, "spec").and_then(|spec| child(spec, from)) {
                item.fields.push(field(to, node));
            }
        }
        if let Some(node) = child(route, "middlewares")
            && let NodeKind::List(list) = &node.kind
        {
            let names = list.iter().filter_map(|it| text(it, &["name"]));
            item.fields.push(TraefikField {
                name: "middlewares".to_owned(),
                values: names.map(str::to_owned).collect(),
                place: node.place,
            });
        }
        into.routers.push(item);
    }
}

/// Looks for `http.middlewares`, `http.routers` and labels anywhere in a tree.
fn walk<'t>(node: &'t YamlNode, path: &mut Vec<&'t str>, into: &mut TraefikItems) {
    if path.len() > DEPTH_MAX {
        return;
    }
    match &node.kind {
        NodeKind::Map(entries) => {
            for entry in entries {
                let key = entry.key.text.as_str();
                let place = entry.key.place;
                if let (true, Some(value)) = (is_label(key), entry.value.as_text()) {
                    label(key, value, place, into);
                } else if let ["http", kind] = path.as_slice()
                    && let Some(items) = into.of(kind)
                {
                    let mut item = TraefikItem::new(key, place);
                    fields(&entry.value, &mut Vec::new(), &mut item);
                    items.push(item);
                } else {
                    path.push(key);
                    walk(&entry.value, path, into);
                    path.pop();
                }
            }
        }
        NodeKind::List(items) => {
            for item in items {
                match item.as_text().and_then(|it| it.split_once('=')) {
                    Some((key, value)) if is_label(key) => label(key, value, item.place, into),
                    _ => walk(item, path, into),
                }
            }
        }
        _ => {}
    }
}

fn is_label(key: &str) -> bool {
    key.get(..13)
        .is_some_and(|start| start.eq_ignore_ascii_case("traefik.http."))
}

/// Adds a label such as `traefik.http.middlewares.api.ratelimit.average=100`.
fn label(key: &str, value: &str, place: TextSpan, into: &mut TraefikItems) {
    let mut parts = key.splitn(5, '.').skip(2);
    let (Some(kind), Some(name), Some(of)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let Some(items) = into.of(&kind.to_ascii_lowercase()) else {
        return;
    };
    let name = name.to_owned();
    let of = of.to_ascii_lowercase();
    let values = match of.as_str() {
        // A rule may contain commas.
        "rule" => vec![value.to_owned()],
        _ => value.split(',').map(|it| it.trim().to_owned()).collect(),
    };
    let at = items.iter().position(|it| it.name == name);
    let at = at.unwrap_or_else(|| {
        items.push(TraefikItem::new(&name, place));
        items.len() - 1
    });
    if let Some(item) = items.get_mut(at) {
        item.fields.push(TraefikField {
            name: of,
            values,
            place,
        });
    }
}

/// Adds all fields below a node.
fn fields(node: &YamlNode, path: &mut Vec<String>, item: &mut TraefikItem) {
    match &node.kind {
        // `tls: {}` turns it on.
        NodeKind::Map(entries)
            if path.len() < DEPTH_MAX && !(entries.is_empty() && *path == ["tls"]) =>
        {
            for entry in entries {
                path.push(entry.key.text.to_ascii_lowercase());
                fields(&entry.value, path, item);
                path.pop();
            }
        }
        _ => item.fields.push(field(&path.join("."), node)),
    }
}

fn field(name: &str, node: &YamlNode) -> TraefikField {
    let values = match &node.kind {
        NodeKind::List(items) => items.iter().filter_map(YamlNode::as_text).collect(),
        _ => node.as_text().into_iter().collect::<Vec<_>>(),
    };
    TraefikField {
        name: name.to_owned(),
        values: values.into_iter().map(str::to_owned).collect(),
        place: node.place,
    }
}

fn child<'t>(node: &'t YamlNode, name: &str) -> Option<&'t YamlNode> {
    let NodeKind::Map(entries) = &node.kind else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key.text == name)?;
    Some(&entry.value)
}

fn text<'t>(node: &'t YamlNode, path: &[&str]) -> Option<&'t str> {
    let node = path.iter().try_fold(node, |node, name| child(node, name))?;
    node.as_text()
}

impl TraefikItems {
    fn of(&mut self, kind: &str) -> Option<&mut Vec<TraefikItem>> {
        match kind {
            "middlewares" => Some(&mut self.middlewares),
            "routers" => Some(&mut self.routers),
            _ => None,
        }
    }
}
