//! Who uses what.

use super::buckets::config;
use super::documents::{of, value};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::respond::Refusal;
use crate::live::View;
use serde_json::{Value, json};
use tidegate_policy::source::{Document, DocumentKind};

/// What uses documents and is none itself.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The guard that keeps those out who ask too often.
    ban: Option<String>,
}

impl Usage {
    /// What there is to know of those of this kind.
    pub(super) async fn of(api: &Api, kind: DocumentKind) -> Result<Self, Refusal> {
        if kind != DocumentKind::Guard {
            return Ok(Self::default());
        }
        let ban = config(api).await?.addresses.and_then(|it| it.ban);
        Ok(Self {
            ban: ban.map(|ban| ban.guard),
        })
    }

    /// What needs a document.
    pub(super) fn shown(&self, view: &View, document: &Document) -> Value {
        let users = self.users(view, document).into_iter();
        let users = users.map(|(kind, name)| json!({ "kind": kind, "name": name }));
        Value::Array(users.collect())
    }

    /// The same for people.
    pub(super) fn told(&self, view: &View, document: &Document) -> Vec<String> {
        let users = self.users(view, document).into_iter();
        users
            .map(|(kind, name)| format!("{kind} `{name}`"))
            .collect()
    }

    fn users(&self, view: &View, document: &Document) -> Vec<(&'static str, String)> {
        match document.kind {
            DocumentKind::Policy => routes(view, document),
            DocumentKind::Guard if self.ban.as_ref() == Some(&document.name) => {
                vec![("setting", "addresses.ban".to_owned())]
            }
            DocumentKind::Guard | DocumentKind::Route => Vec::new(),
        }
    }
}

/// What needs a limit: others of its policy that stand in for it.
pub(super) fn of_limit(policy: &Value, limit: &str) -> Vec<String> {
    let limits = policy.get("limits").and_then(Value::as_array);
    let limits = limits.into_iter().flatten();
    let users = limits.filter(|it| is_named(it.get("replaces"), limit));
    let names = users.filter_map(|it| it.get("name").and_then(Value::as_str));
    names.map(|name| format!("limit `{name}`")).collect()
}

/// The routes that have a policy.
fn routes(view: &View, document: &Document) -> Vec<(&'static str, String)> {
    // Whoever names none has the first.
    let first = of(view, DocumentKind::Policy).next();
    let is_first = first.is_some_and(|first| first.name == document.name);
    let routes = of(view, DocumentKind::Route).filter(|route| {
        let route = value(route);
        let policy = route.get("policy").filter(|it| !it.is_null());
        match policy {
            Some(policy) if is_named(Some(policy), &document.name) => true,
            None if is_first => true,
            _ => is_named(route.get("messages"), &document.name),
        }
    });
    routes.map(|route| ("route", route.name.clone())).collect()
}

/// Whether a name, or one of several, is this one.
fn is_named(names: Option<&Value>, name: &str) -> bool {
    match names {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}
