//! The limits of policies.

use super::documents::{of, value};
use super::editing::{self, EditTarget, used};
use super::modes::{MODES, mode_of};
use super::usage::{self, DocumentUsage};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::page;
use crate::doors::admin::api::patch;
use crate::doors::admin::api::path::encode;
use crate::doors::admin::api::respond::{AdminProblem, Done};
use crate::doors::admin::api::route::BASE;
use crate::live::ServedConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_policy::mask;
use tidegate_policy::source::{ConfigDocument, DocumentKind};

const POLICY: DocumentKind = DocumentKind::Policy;

/// A limit, and the policy that it belongs to.
struct LimitInPolicy<'v> {
    policy: &'v ConfigDocument,
    /// All limits of the policy.
    limits: Arc<Vec<Value>>,
    /// The index of the limit.
    at: usize,
}

impl LimitInPolicy<'_> {
    fn limit(&self) -> &Value {
        self.limits.get(self.at).unwrap_or(&Value::Null)
    }

    fn name(&self) -> String {
        name(self.limit())
    }

    /// Returns its version.
    fn etag(&self) -> ETag {
        let digest = self.policy.limit_digests.get(self.at);
        digest.map_or_else(|| ETag::of(self.limit()), |it| ETag::of_text(it))
    }
}

/// Lists the limits that match the query, in evaluation order.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> Done {
    let view = api.composer.view().await;
    let wanted = call.query.text("policy");
    let found = of(&view, POLICY).filter(|it| wanted.is_none_or(|name| it.name == name));
    let found = found.flat_map(all);
    let found: Vec<LimitInPolicy<'_>> = found.filter(|it| is_wanted(it, call)).collect();
    let usage = DocumentUsage::of_policies(&view);
    let body = page::of(&found, &call.query, |found| item(&view, found, &usage));
    Done::seen(body).at(ETag::of_text(&view.version))
}

/// Lists the limits of one policy.
pub(in super::super) async fn list_of(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let view = api.composer.view().await;
    let target = EditTarget::find(&view, POLICY, call.param("policy"))?;
    let found = all(target.document).filter(|it| is_wanted(it, call));
    let found: Vec<LimitInPolicy<'_>> = found.collect();
    let usage = DocumentUsage::of_policies(&view);
    let body = page::of(&found, &call.query, |found| item(&view, found, &usage));
    Ok(Done::seen(body).at(target.etag()))
}

/// Returns one limit.
pub(in super::super) async fn get(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let view = api.composer.view().await;
    show(&view, call.param("policy"), call.param("limit"))
}

/// Adds a limit to a policy, after all others.
pub(in super::super) async fn create(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let policy = call.param("policy");
    let name = call
        .body
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() {
        return Err(AdminProblem::senseless("name", "it needs a name"));
    }
    let added = |_: &EditTarget<'_>, document: &mut Value| {
        if position(document, name).is_some() {
            let name = crate::wire::fault::quote(name);
            return Err(AdminProblem::new(
                409,
                format!("there is a limit {name} already"),
            ));
        }
        limits(document)?.push(call.body.clone());
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (POLICY, policy), added))
        .await?;
    let place = format!("{BASE}/policies/{}/limits/{}", encode(policy), encode(name));
    let found = find(&view, policy, name)?;
    let item = item(&view, &found, &DocumentUsage::of_policies(&view));
    Ok(Done::created(item, place).at(found.etag()))
}

/// Applies a merge patch to a limit.
pub(in super::super) async fn change(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let (policy, name) = (call.param("policy"), call.param("limit"));
    let renamed = call.body.get("name");
    if renamed.is_some_and(|renamed| renamed.as_str() != Some(name)) {
        let why = "a name cannot be changed: buckets are named after it";
        return Err(AdminProblem::senseless("name", why));
    }
    let view = alter(api, call, |limit| patch::merge(limit, &call.body)).await?;
    show(&view, policy, name)
}

/// Removes a limit from its policy.
pub(in super::super) async fn remove(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let (policy, name) = (call.param("policy"), call.param("limit"));
    let removed = |target: &EditTarget<'_>, document: &mut Value| {
        let found = check(call, target, name)?;
        let users = usage::of_limit(&found.limits, name).into_iter();
        let users: Vec<String> = users
            .map(|(kind, name)| format!("{kind} `{name}`"))
            .collect();
        if !users.is_empty() {
            return Err(used("limit", name, &users));
        }
        let at = position(document, name);
        limits(document)?.remove(at.unwrap_or_default());
        Ok(())
    };
    api.change(call, editing::edit(api, (POLICY, policy), removed))
        .await?;
    Ok(Done::gone())
}

/// Changes the limit that `call` names, if it has the version that the caller has seen.
pub(super) async fn alter(
    api: &Api,
    call: &AdminCall,
    change: impl Fn(&mut Value),
) -> Result<Arc<ServedConfig>, AdminProblem> {
    let (policy, name) = (call.param("policy"), call.param("limit"));
    let altered = |target: &EditTarget<'_>, document: &mut Value| {
        check(call, target, name)?;
        let at = position(document, name);
        let limit = at.and_then(|at| limits(document).ok()?.get_mut(at));
        limit
            .map(&change)
            .ok_or_else(|| AdminProblem::unknown("limit", name))
    };
    api.change(call, editing::edit(api, (POLICY, policy), altered))
        .await
}

/// Returns a limit as a response.
pub(super) fn show(view: &ServedConfig, policy: &str, name: &str) -> Result<Done, AdminProblem> {
    let found = find(view, policy, name)?;
    let item = item(view, &found, &DocumentUsage::of_policies(view));
    Ok(Done::seen(item).at(found.etag()))
}

fn find<'v>(
    view: &'v ServedConfig,
    policy: &str,
    name: &str,
) -> Result<LimitInPolicy<'v>, AdminProblem> {
    in_policy(EditTarget::find(view, POLICY, policy)?.document, name)
}

fn in_policy<'v>(
    policy: &'v ConfigDocument,
    name: &str,
) -> Result<LimitInPolicy<'v>, AdminProblem> {
    let found = all(policy).find(|it| it.name() == name);
    found.ok_or_else(|| AdminProblem::unknown("limit", name))
}

/// Returns the limit of this name, if it has the version that the caller has seen.
fn check<'v>(
    call: &AdminCall,
    policy: &EditTarget<'v>,
    name: &str,
) -> Result<LimitInPolicy<'v>, AdminProblem> {
    let found = in_policy(policy.document, name)?;
    call.expected.check(&found.etag())?;
    Ok(found)
}

fn all(policy: &ConfigDocument) -> impl Iterator<Item = LimitInPolicy<'_>> {
    let limits = match value(policy).get_mut("limits").map(Value::take) {
        Some(Value::Array(limits)) => Arc::new(limits),
        _ => Arc::default(),
    };
    (0..limits.len()).map(move |at| LimitInPolicy {
        policy,
        limits: Arc::clone(&limits),
        at,
    })
}

fn is_wanted(found: &LimitInPolicy<'_>, call: &AdminCall) -> bool {
    let (name, mode) = (call.query.text("name"), call.query.text("mode"));
    name.is_none_or(|name| found.name().starts_with(name))
        && mode.is_none_or(|mode| mode_of(found.limit()) == mode)
}

fn item(view: &ServedConfig, found: &LimitInPolicy<'_>, usage: &DocumentUsage) -> Value {
    let name = found.name();
    let mut users = usage::of_limit(&found.limits, &name);
    users.extend(usage.users(found.policy));
    let part = view.part_of(found.policy);
    json!({
        "policy": found.policy.name,
        "name": name,
        "mode": mode_of(found.limit()),
        "source": part.map(|part| part.name.as_str()),
        "writable": part.is_some_and(|part| part.is_writable),
        "version": found.etag().as_str(),
        "used_by": usage::shown(users),
        "document": mask::hidden(found.limit()),
    })
}

/// Returns the name of a limit. A number is a valid name as well.
fn name(limit: &Value) -> String {
    match limit.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(name)) => name.to_string(),
        _ => String::new(),
    }
}

fn position(policy: &Value, name: &str) -> Option<usize> {
    let limits = policy.get("limits")?.as_array()?;
    limits.iter().position(|limit| self::name(limit) == name)
}

fn limits(policy: &mut Value) -> Result<&mut Vec<Value>, AdminProblem> {
    let limits = policy.get_mut("limits").and_then(Value::as_array_mut);
    limits.ok_or_else(|| AdminProblem::senseless("limits", "the policy has no list of limits"))
}

/// Counts the limits in each mode.
pub(super) fn count_by_mode(view: &ServedConfig) -> Value {
    let mut counts: serde_json::Map<String, Value> = MODES
        .iter()
        .map(|mode| ((*mode).to_owned(), 0.into()))
        .collect();
    for found in of(view, POLICY).flat_map(all) {
        let count = counts.entry(mode_of(found.limit())).or_insert(0.into());
        *count = count.as_u64().unwrap_or_default().saturating_add(1).into();
    }
    Value::Object(counts)
}
