//! Changes the modes of limits, guards and routes.

use super::documents::show;
use super::editing::{self, EditTarget};
use super::limits;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::respond::{AdminProblem, Done, ProblemCollector};
use serde_json::{Map, Value};
use tidegate_policy::source::DocumentKind;

/// The modes that a limit can be set to. `on` restores the mode before `off`.
pub(in super::super) const OF_LIMITS: [&str; 5] = ["on", "off", "enforce", "shadow", "quota"];

/// The modes that a limit can be in.
pub(in super::super) const MODES: [&str; 4] = ["enforce", "shadow", "quota", "off"];

/// The modes that a guard can be set to; `on` as for limits.
pub(in super::super) const OF_GUARDS: [&str; 4] = ["on", "off", "enforce", "shadow"];

/// The modes that a guard can be in.
pub(in super::super) const MODES_OF_GUARDS: [&str; 3] = ["enforce", "shadow", "off"];

/// The modes that a route can be set to, and be in.
pub(in super::super) const OF_ROUTES: [&str; 2] = ["on", "off"];

/// Sets the mode of all limits of a policy.
pub(in super::super) async fn of_policy(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let (kind, name) = (DocumentKind::Policy, call.param("policy"));
    let mode = wanted(call, &OF_LIMITS)?;
    let turned = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        let limits = document.get_mut("limits").and_then(Value::as_array_mut);
        for limit in limits.into_iter().flatten() {
            turn(limit, mode);
        }
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (kind, name), turned))
        .await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Sets the mode of one limit.
pub(in super::super) async fn of_limit(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let mode = wanted(call, &OF_LIMITS)?;
    let view = limits::alter(api, call, |limit| turn(limit, mode)).await?;
    limits::show(&view, call.param("policy"), call.param("limit"))
}

/// Sets the mode of a guard.
pub(in super::super) async fn of_guard(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let mode = wanted(call, &OF_GUARDS)?;
    of_document(api, call, (DocumentKind::Guard, mode)).await
}

/// Sets the mode of a route.
pub(in super::super) async fn of_route(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let mode = wanted(call, &OF_ROUTES)?;
    of_document(api, call, (DocumentKind::Route, mode)).await
}

/// Sets the mode of a guard or a route.
async fn of_document(
    api: &Api,
    call: &AdminCall,
    (kind, mode): (DocumentKind, &str),
) -> Result<Done, AdminProblem> {
    let name = call.param(kind.word());
    let turned = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        turn(document, mode);
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (kind, name), turned))
        .await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Returns the mode of a limit or a guard.
pub(super) fn mode_of(document: &Value) -> &str {
    if is_off(document) {
        return "off";
    }
    document
        .get("mode")
        .and_then(Value::as_str)
        .unwrap_or("enforce")
}

/// Returns the mode of a document. A policy has none, but its limits do.
pub(super) fn mode_of_document(kind: DocumentKind, document: &Value) -> Option<&str> {
    match kind {
        DocumentKind::Policy => None,
        DocumentKind::Guard => Some(mode_of(document)),
        DocumentKind::Route if is_off(document) => Some("off"),
        DocumentKind::Route => Some("on"),
    }
}

fn is_off(document: &Value) -> bool {
    let enabled = document.get("enabled");
    enabled.is_some_and(|it| *it == Value::Bool(false) || it == "false")
}

pub(super) fn wanted<'c>(call: &'c AdminCall, known: &[&str]) -> Result<&'c str, AdminProblem> {
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["mode"]));
    let why = || format!("expected one of {}", known.join(", "));
    let mode = call.text("mode").and_then(|mode| {
        let mode = mode.filter(|mode| known.contains(mode));
        mode.ok_or_else(|| AdminProblem::senseless("mode", why()))
    });
    let mode = wrong.take(mode);
    wrong.end()?;
    mode.ok_or_else(AdminProblem::failed)
}

/// Sets the mode of a limit, a guard or a route. Being enabled is separate from the mode.
fn turn(document: &mut Value, mode: &str) {
    let Value::Object(document) = document else {
        return;
    };
    match mode {
        "off" => set(document, "enabled", Some(Value::Bool(false))),
        "on" => set(document, "enabled", None),
        mode => {
            set(document, "enabled", None);
            set(document, "mode", (mode != "enforce").then(|| mode.into()));
        }
    }
}

fn set(document: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => document.insert(name.to_owned(), value),
        None => document.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_that_is_turned_off_and_on_is_what_it_was() {
        let mut limit = json!({ "name": "all", "rate": "1/s", "mode": "shadow" });
        let before = limit.clone();
        turn(&mut limit, "off");
        assert_eq!(mode_of(&limit), "off");
        turn(&mut limit, "on");
        assert_eq!(limit, before);
        turn(&mut limit, "enforce");
        assert_eq!(limit, json!({ "name": "all", "rate": "1/s" }));
        for mode in MODES {
            turn(&mut limit, mode);
            assert_eq!(mode_of(&limit), mode);
        }
    }

    #[test]
    fn guards_and_routes_that_are_turned_off_and_on_are_what_they_were() {
        let guard = json!({ "name": "out", "refuse": "ip", "list": [], "mode": "shadow" });
        let route = json!({ "id": "shop", "upstreams": ["http://127.0.0.1:1"] });
        for (kind, before, on) in [
            (DocumentKind::Guard, guard, "shadow"),
            (DocumentKind::Route, route, "on"),
        ] {
            let mut document = before.clone();
            turn(&mut document, "off");
            assert_eq!(mode_of_document(kind, &document), Some("off"));
            turn(&mut document, "on");
            assert_eq!(mode_of_document(kind, &document), Some(on));
            assert_eq!(document, before);
        }
    }
}
