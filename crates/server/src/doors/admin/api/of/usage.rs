//! The users of documents: what refers to a policy, a guard or a limit.

use super::buckets::config;
use super::documents::{of, value};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::respond::AdminProblem;
use crate::live::ServedConfig;
use serde_json::{Value, json};
use tidegate_policy::source::{ConfigDocument, DocumentKind};

/// The references to documents, read once for a whole list of them.
#[derive(Debug, Default)]
pub(super) struct DocumentUsage {
    /// The guard that bans by request count.
    ban: Option<String>,
    /// The routes, by name, with their content.
    routes: Vec<(String, Value)>,
    /// The policy of routes that name none.
    first: Option<String>,
}

/// A user: its kind and its name.
pub(super) type User = (&'static str, String);

impl DocumentUsage {
    /// Reads the references to documents of this kind.
    pub(super) async fn of(
        api: &Api,
        view: &ServedConfig,
        kind: DocumentKind,
    ) -> Result<Self, AdminProblem> {
        match kind {
            DocumentKind::Policy => Ok(Self::of_policies(view)),
            DocumentKind::Guard => {
                let ban = config(api).await?.addresses.and_then(|it| it.ban);
                Ok(Self {
                    ban: ban.map(|ban| ban.guard),
                    ..Self::default()
                })
            }
            DocumentKind::Route => Ok(Self::default()),
        }
    }

    /// Reads the references to policies, all of which are in the served configuration.
    pub(super) fn of_policies(view: &ServedConfig) -> Self {
        let routes = of(view, DocumentKind::Route);
        Self {
            ban: None,
            routes: routes.map(|it| (it.name.clone(), value(it))).collect(),
            first: of(view, DocumentKind::Policy)
                .next()
                .map(|it| it.name.clone()),
        }
    }

    /// Returns the users of a document as JSON.
    pub(super) fn shown(&self, document: &ConfigDocument) -> Value {
        shown(self.users(document))
    }

    /// Returns the users of a document as text.
    pub(super) fn told(&self, document: &ConfigDocument) -> Vec<String> {
        let users = self.users(document).into_iter();
        users
            .map(|(kind, name)| format!("{kind} `{name}`"))
            .collect()
    }

    pub(super) fn users(&self, document: &ConfigDocument) -> Vec<User> {
        match document.kind {
            DocumentKind::Policy => self.routes(document),
            DocumentKind::Guard if self.ban.as_ref() == Some(&document.name) => {
                vec![("setting", "addresses.ban".to_owned())]
            }
            DocumentKind::Guard | DocumentKind::Route => Vec::new(),
        }
    }

    /// Returns the routes that use a policy.
    fn routes(&self, policy: &ConfigDocument) -> Vec<User> {
        // A route that names no policy uses the first.
        let is_first = self.first.as_ref() == Some(&policy.name);
        let routes = self.routes.iter().filter(|(_, route)| {
            let named = route.get("policy").filter(|it| !it.is_null());
            match named {
                Some(named) if is_named(Some(named), &policy.name) => true,
                None if is_first => true,
                _ => is_named(route.get("messages"), &policy.name),
            }
        });
        routes.map(|(name, _)| ("route", name.clone())).collect()
    }
}

/// Returns users as JSON.
pub(super) fn shown(users: impl IntoIterator<Item = User>) -> Value {
    let users = users.into_iter();
    let users = users.map(|(kind, name)| json!({ "kind": kind, "name": name }));
    Value::Array(users.collect())
}

/// Returns the users of a limit: other limits of its policy that fall back to it.
pub(super) fn of_limit(limits: &[Value], limit: &str) -> Vec<User> {
    let users = limits
        .iter()
        .filter(|it| is_named(it.get("replaces"), limit));
    let names = users.filter_map(|it| it.get("name").and_then(Value::as_str));
    names.map(|name| ("limit", name.to_owned())).collect()
}

/// Returns true if `names` is this name, or contains it.
fn is_named(names: Option<&Value>, name: &str) -> bool {
    match names {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}
