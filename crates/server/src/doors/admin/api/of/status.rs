//! The status of this server and its configuration; and reloads.

use super::documents::of;
use super::limits;
use crate::decider::DeciderHealth as StoreStanding;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::openapi;
use crate::doors::admin::api::respond::{AdminProblem, Done};
use crate::live::{ReloadError, SourceView};
use crate::telemetry::health;
use crate::telemetry::instances::agree;
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidegate::AnyStore;
use tidegate::shared_state::{Instance, SharedInstances};
use tidegate_policy::source::DocumentKind;

/// The timeout for reading the list of other instances; after it, the last known count is reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the status report.
pub(in super::super) async fn status(api: &Api, _: &AdminCall) -> Result<Done, AdminProblem> {
    let view = api.composer.view().await;
    let sources = api.composer.standings();
    let counts = DocumentKind::ALL.map(|kind| (kind.section(), of(&view, kind).count()));
    let mut served: Map<String, Value> = counts
        .into_iter()
        .map(|(section, count)| (section.to_owned(), count.into()))
        .collect();
    served.insert("limits".to_owned(), limits::count_by_mode(&view));
    Ok(Done::seen(json!({
        "version": view.version,
        "program": env!("CARGO_PKG_VERSION"),
        "mode": health::mode(&api.decider),
        "served": served,
        "sources": sources.iter().map(source).collect::<Vec<_>>(),
        "store": store(api).await,
        "instances": instances(api).await,
        "lists": lists(api),
        "plans": plans(api),
    })))
}

/// Returns the caller.
pub(in super::super) fn whoami(call: &AdminCall) -> Done {
    let caller = &call.caller;
    Done::seen(json!({ "name": &*caller.name, "role": caller.role.as_str() }))
}

/// Returns the `OpenAPI` document.
pub(in super::super) fn openapi() -> Done {
    let document = openapi::document();
    let etag = ETag::of(document);
    Done::seen(document.clone()).at(etag)
}

/// Reloads the file and all sources.
pub(in super::super) async fn reload(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let reload = async {
        let before = api.composer.view().await.version.clone();
        let reloaded = api.composer.reload().await;
        let after = api.composer.view().await.version.clone();
        let change = AuditedChange {
            target: "configuration".to_owned(),
            before: json!({ "version": before }),
            after: json!({ "version": after }),
        };
        let refusal = match reloaded {
            Ok(()) => return Ok((after, Some(change))),
            Err(ReloadError::Invalid(errors)) => AdminProblem::unsound(&errors),
            Err(ReloadError::Unservable(why)) => AdminProblem::new(422, why),
            Err(ReloadError::Unread(why)) => AdminProblem::away(why),
            Err(refused @ ReloadError::BuiltIn) => AdminProblem::new(409, refused.to_string()),
        };
        // The valid sources are served, even if others are invalid.
        Err(if before == after {
            refusal
        } else {
            refusal.told(AuditOutcome::PartlyRefused, change)
        })
    };
    let version = api.change(call, reload).await?;
    let sources = api.composer.standings();
    Ok(Done::seen(json!({
        "version": version,
        "sources": sources.iter().map(source).collect::<Vec<_>>(),
    })))
}

fn source(standing: &SourceView) -> Value {
    json!({
        "name": standing.name,
        "kind": standing.kind,
        "writable": standing.is_writable,
        "version": standing.version,
        "age_ms": standing.age.map(millis),
        "applied_ms": standing.applied.map(millis),
        "stale": standing.is_stale,
        "refused": standing.is_refused,
        "fallback": standing.is_fallback,
        "trouble": standing.trouble,
    })
}

async fn store(api: &Api) -> Value {
    let standing = match api.decider.standing().await {
        StoreStanding::Sound => "sound",
        StoreStanding::Degraded => "degraded",
        StoreStanding::Stuck => "stuck",
    };
    let kind = match api.decider.limiter().store() {
        AnyStore::Redis(_) => "redis",
        _ => "memory",
    };
    let nodes = match api.decider.limiter().store() {
        AnyStore::Redis(store) => {
            let nodes = store.connection().nodes();
            let names = nodes.iter().map(|node| node.address.to_string());
            names.collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    json!({ "kind": kind, "standing": standing, "nodes": nodes })
}

/// Returns the instances that share the store, and the configuration version of each, as far as known.
async fn instances(api: &Api) -> Value {
    let instances = api.decider.limiter().instances();
    // While Redis is unreachable, the number is the last known one, and only known instances are listed.
    let roll = match instances {
        Some(instances) => instances.roll(PATIENCE).await.ok().flatten(),
        None => None,
    };
    let all = roll.iter().flat_map(|roll| &roll.instances);
    json!({
        "counted": roll.is_some(),
        "this": instances.map(SharedInstances::id),
        "live": instances.map_or(1, |it| it.count().load(Relaxed).max(1)),
        "versions_agree": roll.as_ref().and_then(agree),
        "all": all.map(instance).collect::<Vec<_>>(),
    })
}

fn instance(instance: &Instance) -> Value {
    let serves = instance.serves.as_ref();
    json!({
        "name": instance.name,
        "this": instance.is_this,
        "version": serves.map(|it| &it.version),
        "program": serves.map(|it| &it.program),
        "heard_ms": millis(instance.heard),
        "applied_ms": serves.map(|it| millis(it.since)),
    })
}

fn lists(api: &Api) -> Vec<Value> {
    let lists = api.decider.limiter().lists().into_iter();
    lists
        .map(|list| {
            json!({
                "guard": list.guard,
                "enabled": list.enabled,
                "members": list.members,
                "skipped": list.skipped,
                "age_ms": list.age.map(millis),
                "failing_for_ms": list.failing_for.map(millis),
                "error": list.error,
            })
        })
        .collect()
}

fn plans(api: &Api) -> Vec<Value> {
    let plans = api.decider.limiter().plans().into_iter();
    plans
        .map(|it| {
            json!({
                "name": it.name,
                "kind": it.kind,
                "subjects": it.subjects,
                "age_ms": it.age.map(millis),
                "failing_for_ms": it.failing_for.map(millis),
                "error": it.error,
            })
        })
        .collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
