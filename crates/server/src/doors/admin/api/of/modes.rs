//! Turning limits and guards off and on.

use super::documents::show;
use super::editing::{self, Target};
use super::limits;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::Call;
use crate::doors::admin::api::respond::{Done, Gathered, Refusal};
use serde_json::{Map, Value};
use tidegate_policy::source::DocumentKind;

/// What a limit can be turned to. `on` is whatever it was before it was turned off.
pub(in super::super) const OF_LIMITS: [&str; 5] = ["on", "off", "enforce", "shadow", "quota"];

/// How a limit can be.
pub(in super::super) const MODES: [&str; 4] = ["enforce", "shadow", "quota", "off"];

/// What a guard can be turned to.
pub(in super::super) const OF_GUARDS: [&str; 2] = ["enforce", "shadow"];

/// Turns all limits of a policy.
pub(in super::super) async fn of_policy(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let (kind, name) = (DocumentKind::Policy, call.param("policy"));
    let mode = wanted(call, &OF_LIMITS)?;
    let turned = |found: &Target<'_>, document: &mut Value| {
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
    let target = Target::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Turns one limit.
pub(in super::super) async fn of_limit(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let mode = wanted(call, &OF_LIMITS)?;
    let view = limits::alter(api, call, |limit| turn(limit, mode)).await?;
    limits::show(&view, call.param("policy"), call.param("limit"))
}

/// Turns a guard.
pub(in super::super) async fn of_guard(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let (kind, name) = (DocumentKind::Guard, call.param("guard"));
    let mode = wanted(call, &OF_GUARDS)?;
    let turned = |found: &Target<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        if let Value::Object(guard) = document {
            set(guard, "mode", (mode != "enforce").then(|| mode.into()));
        }
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (kind, name), turned))
        .await?;
    let target = Target::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// How a limit is.
pub(super) fn mode_of(limit: &Value) -> &str {
    let enabled = limit.get("enabled");
    if enabled.is_some_and(|it| *it == Value::Bool(false) || it == "false") {
        return "off";
    }
    limit
        .get("mode")
        .and_then(Value::as_str)
        .unwrap_or("enforce")
}

pub(super) fn wanted<'c>(call: &'c Call, known: &[&str]) -> Result<&'c str, Refusal> {
    let mut wrong = Gathered::default();
    wrong.take(call.only(&["mode"]));
    let why = || format!("expected one of {}", known.join(", "));
    let mode = call.text("mode").and_then(|mode| {
        let mode = mode.filter(|mode| known.contains(mode));
        mode.ok_or_else(|| Refusal::senseless("mode", why()))
    });
    let mode = wrong.take(mode);
    wrong.end()?;
    mode.ok_or_else(Refusal::failed)
}

/// Turns a limit: whether it counts at all is one thing, and how it does another.
fn turn(limit: &mut Value, mode: &str) {
    let Value::Object(limit) = limit else {
        return;
    };
    match mode {
        "off" => set(limit, "enabled", Some(Value::Bool(false))),
        "on" => set(limit, "enabled", None),
        mode => {
            set(limit, "enabled", None);
            set(limit, "mode", (mode != "enforce").then(|| mode.into()));
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
}
