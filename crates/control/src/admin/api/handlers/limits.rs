//! The limits of policies.

use super::documents::{of, value};
use super::editing::{self, EditTarget, used};
use super::modes::{MODES, mode_of};
use super::usage::{self, DocumentUsage};
use crate::admin::api::Api;
use crate::admin::api::bodies::documents::{DocumentItem, LimitItem};
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::bodies::{LanguageDocument, MergePatch, NoContent};
use crate::admin::api::etag::ETag;
use crate::admin::api::patch;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::admin::api::routing::path::encode;
use crate::admin::api::routing::route::BASE;
use crate::live::ServedConfig;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_config::compose::{ConfigDocument, DocumentKind};
use tidegate_policy::redact;

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
pub(in super::super) async fn list(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<LimitItem>> {
    let view = api.composer.view().await;
    let wanted = call.query.text("policy");
    let found = of(&view, POLICY).filter(|it| wanted.is_none_or(|name| it.name == name));
    let found = found.flat_map(all);
    let found: Vec<LimitInPolicy<'_>> = found.filter(|it| is_wanted(it, call)).collect();
    let usage = DocumentUsage::of_policies(&view);
    let page = ListPage::of(&found, &call.query, |found| item(&view, found, &usage));
    Ok(AdminReply::ok(page).at(ETag::of_text(&view.version)))
}

/// Lists the limits of one policy.
pub(in super::super) async fn list_of(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<LimitItem>> {
    let view = api.composer.view().await;
    let target = EditTarget::find(&view, POLICY, call.param("policy"))?;
    let found = all(target.document).filter(|it| is_wanted(it, call));
    let found: Vec<LimitInPolicy<'_>> = found.collect();
    let usage = DocumentUsage::of_policies(&view);
    let page = ListPage::of(&found, &call.query, |found| item(&view, found, &usage));
    Ok(AdminReply::ok(page).at(target.etag()))
}

/// Returns one limit.
pub(in super::super) async fn get(api: &Api, call: &AdminCall) -> ReplyResult<LimitItem> {
    let view = api.composer.view().await;
    show(&view, call.param("policy"), call.param("limit"))
}

/// Adds a limit to a policy, after all others.
pub(in super::super) async fn create(
    api: &Api,
    call: &AdminCall,
    LanguageDocument(limit): LanguageDocument,
) -> ReplyResult<LimitItem> {
    let policy = call.param("policy");
    let limit = Value::Object(limit);
    let name = limit.get("name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.is_empty() {
        return Err(AdminProblem::invalid("name", "it needs a name"));
    }
    let added = |_: &EditTarget<'_>, document: &mut Value| {
        if position(document, name).is_some() {
            let name = tidegate_frontends::wire::fault::quote(name);
            return Err(AdminProblem::conflict(format!(
                "there is a limit {name} already"
            )));
        }
        limits(document)?.push(limit.clone());
        Ok(())
    };
    let view = api
        .change(call, editing::edit(api, (POLICY, policy), added))
        .await?;
    let place = format!("{BASE}/policies/{}/limits/{}", encode(policy), encode(name));
    Ok(show(&view, policy, name)?.created(place))
}

/// Applies a merge patch to a limit.
pub(in super::super) async fn change(
    api: &Api,
    call: &AdminCall,
    MergePatch(patch): MergePatch,
) -> ReplyResult<LimitItem> {
    let (policy, name) = (call.param("policy"), call.param("limit"));
    let renamed = patch.get("name");
    if renamed.is_some_and(|renamed| renamed.as_str() != Some(name)) {
        let why = "a name cannot be changed: buckets are named after it";
        return Err(AdminProblem::invalid("name", why));
    }
    let patch = Value::Object(patch);
    let view = alter(api, call, |limit| patch::merge(limit, &patch)).await?;
    show(&view, policy, name)
}

/// Removes a limit from its policy.
pub(in super::super) async fn remove(api: &Api, call: &AdminCall) -> ReplyResult<NoContent> {
    let (policy, name) = (call.param("policy"), call.param("limit"));
    let removed = |target: &EditTarget<'_>, document: &mut Value| {
        let found = check(call, target, name)?;
        let users = usage::of_limit(&found.limits, name);
        let users: Vec<String> = users.iter().map(ToString::to_string).collect();
        if !users.is_empty() {
            return Err(used("limit", name, &users));
        }
        let at = position(document, name);
        limits(document)?.remove(at.unwrap_or_default());
        Ok(())
    };
    api.change(call, editing::edit(api, (POLICY, policy), removed))
        .await?;
    Ok(AdminReply::no_content())
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
            .ok_or_else(|| AdminProblem::not_found("limit", name))
    };
    api.change(call, editing::edit(api, (POLICY, policy), altered))
        .await
}

/// Returns a limit as a response.
pub(super) fn show(view: &ServedConfig, policy: &str, name: &str) -> ReplyResult<LimitItem> {
    let found = find(view, policy, name)?;
    let item = item(view, &found, &DocumentUsage::of_policies(view));
    Ok(AdminReply::ok(item).at(found.etag()))
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
    found.ok_or_else(|| AdminProblem::not_found("limit", name))
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

fn item(view: &ServedConfig, found: &LimitInPolicy<'_>, usage: &DocumentUsage) -> LimitItem {
    let name = found.name();
    let mut users = usage::of_limit(&found.limits, &name);
    users.extend(usage.users(found.policy));
    let part = view.part_of(found.policy);
    LimitItem {
        policy: found.policy.name.clone(),
        mode: mode_of(found.limit()).to_owned(),
        common: DocumentItem {
            name,
            source: part.map(|part| part.name.clone()),
            writable: part.is_some_and(|part| part.is_writable),
            version: found.etag().as_str().to_owned(),
            used_by: users,
            document: redact::hidden(found.limit()),
        },
    }
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
    limits.ok_or_else(|| AdminProblem::invalid("limits", "the policy has no list of limits"))
}

/// Counts the limits in each mode.
pub(super) fn count_by_mode(view: &ServedConfig) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> =
        MODES.iter().map(|mode| ((*mode).to_owned(), 0)).collect();
    for found in of(view, POLICY).flat_map(all) {
        let count = counts.entry(mode_of(found.limit()).to_owned());
        let count = count.or_default();
        *count = count.saturating_add(1);
    }
    counts
}
