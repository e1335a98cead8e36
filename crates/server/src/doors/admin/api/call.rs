//! A call as its handler sees it: authenticated, authorized, and parsed.

use super::caller::Caller;
use super::etag::Expected;
use super::query::Query;
use super::respond::AdminProblem;
use super::route::AdminRoute;
use serde_json::Value;
use std::net::IpAddr;

/// An admin API call.
#[derive(Debug)]
pub(super) struct AdminCall {
    pub(super) route: &'static AdminRoute,
    pub(super) caller: Caller,
    pub(super) peer: IpAddr,
    pub(super) params: Vec<(&'static str, String)>,
    pub(super) query: Query,
    pub(super) body: Value,
    /// The version that the caller must have seen, if the route requires one.
    pub(super) expected: Expected,
}

impl AdminCall {
    /// Returns the value of a path parameter.
    pub(super) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(other, _)| *other == name);
        found.map_or("", |(_, text)| text)
    }

    /// Returns a text member of the body, if present.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, AdminProblem> {
        match self.body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(AdminProblem::senseless(name, "expected a text")),
        }
    }

    /// Returns a boolean member of the body. Default: false.
    pub(super) fn flag(&self, name: &str) -> Result<bool, AdminProblem> {
        match self.body.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(AdminProblem::senseless(name, "expected `true` or `false`")),
        }
    }

    /// Fails with an error for each member of the body that is not in `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), AdminProblem> {
        let mut wrong = AdminProblem::new(422, "what was sent makes no sense");
        let members = self.body.as_object().into_iter().flatten();
        for (name, _) in members.filter(|(name, _)| !known.contains(&name.as_str())) {
            let name = crate::wire::fault::quote(name);
            let message = format!("there is no member {name}; there is {}", known.join(", "));
            wrong = wrong.with("body", message);
        }
        if wrong.has_errors() {
            Err(wrong)
        } else {
            Ok(())
        }
    }
}
