//! Which policy a route has.

use super::documents::show;
use super::editing::{self, Target};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::Call;
use crate::doors::admin::api::respond::{Done, Gathered, Refusal};
use serde_json::Value;
use tidegate_policy::source::DocumentKind;

/// Gives a route the policy that the body names, or several; the first of all with `null`.
pub(in super::super) async fn policy(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let (kind, name) = (DocumentKind::Route, call.param("route"));
    let mut wrong = Gathered::default();
    wrong.take(call.only(&["policy"]));
    let policy = call.body.get("policy");
    let missing = || Refusal::senseless("policy", "it is missing");
    let policy = wrong.take(policy.ok_or_else(missing));
    wrong.end()?;
    let policy = policy.ok_or_else(Refusal::failed)?;
    let assigned = |found: &Target<'_>, document: &mut Value| {
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
    let target = Target::find(&view, kind, name)?;
    show(api, &view, &target).await
}
