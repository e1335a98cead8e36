//! The policy of a route.

use super::documents::show;
use super::editing::{self, EditTarget};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::respond::{AdminProblem, Done, ProblemCollector};
use serde_json::Value;
use tidegate_policy::source::DocumentKind;

/// Sets the policies of a route to the one or several that the body names. `null` stands for the first
/// policy.
pub(in super::super) async fn policy(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let (kind, name) = (DocumentKind::Route, call.param("route"));
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["policy"]));
    let policy = call.body.get("policy");
    let missing = || AdminProblem::senseless("policy", "it is missing");
    let policy = wrong.take(policy.ok_or_else(missing));
    wrong.end()?;
    let policy = policy.ok_or_else(AdminProblem::failed)?;
    let assigned = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        if let Value::Object(route) = document {
            match policy {
                Value::Null => route.remove("policy"),
                policy => route.insert("policy".to_owned(), policy.clone()),
            };
        }
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (kind, name), assigned))
        .await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}
