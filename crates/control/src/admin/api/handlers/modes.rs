//! Changes the modes of limits, guards and routes.

use super::documents::show;
use super::editing::{self, EditTarget};
use super::limits;
use crate::admin::api::Api;
use crate::admin::api::bodies::documents::{
    DocumentView, LimitItem, ModeChange, ModeWord, PolicyItem,
};
use crate::admin::api::reply::ReplyResult;
use crate::admin::api::routing::call::AdminCall;
use serde_json::Value;
use tidegate_config::compose::DocumentKind;

/// The modes of limits, guards and routes.
pub(in super::super) const MODES: [&str; 3] = ["enforce", "shadow", "off"];

/// Sets the mode of all limits of a policy.
pub(in super::super) async fn of_policy(
    api: &Api,
    call: &AdminCall,
    ModeChange { mode }: ModeChange<ModeWord>,
) -> ReplyResult<PolicyItem> {
    let turn_all = |document: &mut Value| {
        let limits = document.get_mut("limits").and_then(Value::as_array_mut);
        for limit in limits.into_iter().flatten() {
            turn(limit, mode);
        }
    };
    change(api, call, turn_all).await
}

/// Sets the mode of one limit.
pub(in super::super) async fn of_limit(
    api: &Api,
    call: &AdminCall,
    ModeChange { mode }: ModeChange<ModeWord>,
) -> ReplyResult<LimitItem> {
    let view = limits::alter(api, call, |limit| turn(limit, mode)).await?;
    limits::show(&view, call.param("policy"), call.param("limit"))
}

/// Sets the mode of a guard or a route.
pub(in super::super) async fn of_document<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
    ModeChange { mode }: ModeChange<ModeWord>,
) -> ReplyResult<V> {
    change(api, call, |document| turn(document, mode)).await
}

/// Changes a document of the version that the caller has seen.
async fn change<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
    turn: impl Fn(&mut Value),
) -> ReplyResult<V> {
    let (kind, name) = (V::KIND, call.param(V::KIND.word()));
    let turned = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        turn(document);
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (kind, name), turned))
        .await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Returns the mode of a limit, a guard or a route.
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
        DocumentKind::Guard | DocumentKind::Route => Some(mode_of(document)),
    }
}

fn is_off(document: &Value) -> bool {
    let enabled = document.get("enabled");
    enabled.is_some_and(|it| *it == Value::Bool(false) || it == "false")
}

/// Sets the mode of a limit, a guard or a route. Of a limit, `mode` takes the place of `enabled`.
fn turn(document: &mut Value, mode: ModeWord) {
    let Value::Object(document) = document else {
        return;
    };
    document.remove("enabled");
    match mode {
        ModeWord::Enforce => document.remove("mode"),
        ModeWord::Shadow => document.insert("mode".to_owned(), "shadow".into()),
        ModeWord::Off => document.insert("mode".to_owned(), "off".into()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_takes_the_mode_set_for_it() {
        let mut limit = json!({ "name": "all", "rate": "1/s", "enabled": false });
        assert_eq!(mode_of(&limit), "off");
        let words = [ModeWord::Enforce, ModeWord::Shadow, ModeWord::Off];
        for (word, mode) in words.into_iter().zip(MODES) {
            turn(&mut limit, word);
            assert_eq!(mode_of(&limit), mode);
        }
        turn(&mut limit, ModeWord::Enforce);
        assert_eq!(limit, json!({ "name": "all", "rate": "1/s" }));
    }

    #[test]
    fn guards_and_routes_are_unchanged_after_off_and_on() {
        let guard = json!({ "name": "out", "deny": "ip", "list": [], "mode": "shadow" });
        let route = json!({ "name": "shop", "upstreams": ["http://127.0.0.1:1"] });
        for (kind, before, (word, on)) in [
            (DocumentKind::Guard, guard, (ModeWord::Shadow, "shadow")),
            (DocumentKind::Route, route, (ModeWord::Enforce, "enforce")),
        ] {
            let mut document = before.clone();
            turn(&mut document, ModeWord::Off);
            assert_eq!(mode_of_document(kind, &document), Some("off"));
            turn(&mut document, word);
            assert_eq!(mode_of_document(kind, &document), Some(on));
            assert_eq!(document, before);
        }
    }
}
