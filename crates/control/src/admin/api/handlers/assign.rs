//! The policy of a route.

use super::documents::show;
use super::editing::{self, EditTarget};
use crate::admin::api::Api;
use crate::admin::api::bodies::documents::{PolicyAssignment, RouteItem};
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::ReplyResult;
use crate::admin::api::routing::call::AdminCall;
use serde_json::Value;
use tidegate_config::compose::DocumentKind;

/// Sets the policies of a route to the one or several that the body names. `null` stands for the first
/// policy.
pub(in super::super) async fn policy(
    api: &Api,
    call: &AdminCall,
    body: PolicyAssignment,
) -> ReplyResult<RouteItem> {
    let (kind, name) = (DocumentKind::Route, call.param("route"));
    let policy = serde_json::to_value(body.policy).map_err(|_| AdminProblem::internal())?;
    let assigned = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        if let Value::Object(route) = document {
            match &policy {
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
