//! The users of documents: what refers to a policy, a guard or a limit.

use super::buckets::config;
use super::documents::{of, value};
use crate::admin::api::Api;
use crate::admin::api::bodies::DocumentUser;
use crate::admin::api::problem::AdminProblem;
use crate::live::ServedConfig;
use serde_json::Value;
use tidegate_config::compose::{ConfigDocument, DocumentKind};

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

    /// Returns the users of a document as text.
    pub(super) fn names_of_users(&self, document: &ConfigDocument) -> Vec<String> {
        self.users(document)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Returns the users of a document.
    pub(super) fn users(&self, document: &ConfigDocument) -> Vec<DocumentUser> {
        match document.kind {
            DocumentKind::Policy => self.routes(document),
            DocumentKind::Guard if self.ban.as_ref() == Some(&document.name) => {
                vec![DocumentUser::new("setting", "addresses.ban")]
            }
            DocumentKind::Guard | DocumentKind::Route => Vec::new(),
        }
    }

    /// Returns the routes that use a policy.
    fn routes(&self, policy: &ConfigDocument) -> Vec<DocumentUser> {
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
        routes
            .map(|(name, _)| DocumentUser::new("route", name))
            .collect()
    }
}

/// Returns the users of a limit: other limits of its policy that fall back to it.
pub(super) fn of_limit(limits: &[Value], limit: &str) -> Vec<DocumentUser> {
    let users = limits
        .iter()
        .filter(|it| is_named(it.get("replaces"), limit));
    let names = users.filter_map(|it| it.get("name").and_then(Value::as_str));
    names.map(|name| DocumentUser::new("limit", name)).collect()
}

/// Returns true if `names` is this name, or contains it.
fn is_named(names: Option<&Value>, name: &str) -> bool {
    match names {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}
