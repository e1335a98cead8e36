//! Which policy a route has.

use super::documents::show;
use super::editing::{self, Target};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::Call;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::respond::{Done, Refusal};
use serde_json::Value;
use tidegate_policy::source::DocumentKind;

/// Gives a route the policy that the body names, or several; the first of all with `null`.
pub(in super::super) async fn policy(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let (kind, name) = (DocumentKind::Route, call.param("route"));
    call.only(&["policy"])?;
    let policy = call.body.get("policy");
    let policy = policy.ok_or_else(|| Refusal::senseless("policy", "it is missing"))?;
    let assigned = |shown: &Value, document: &mut Value| {
        call.expected.check(&ETag::of(shown))?;
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
    let target = Target::find(&view, kind, name)?;
    show(api, &view, &target).await
}
