//! The status of this server and its configuration; and reloads.

use super::documents::of;
use super::limits;
use crate::admin::api::Api;
use crate::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::admin::api::bodies::server::{
    CallerInfo, InstanceList, ReloadReport, ServedCounts, ServerStatus, StoreSummary,
};
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::admin::health::body::{InstanceItem, SourceItem, StatusDocument};
use crate::live::ReloadError;
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidegate_config::compose::DocumentKind;
use tidegate_policy::calendar::ZoneData;
use tidegate_telemetry::instances::agree;

/// The timeout for reading the list of other instances; after it, the last known count is reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the status report.
pub(in super::super) async fn status(api: &Api, _: &AdminCall) -> ReplyResult<ServerStatus> {
    let view = api.composer.view().await;
    let count = |kind| of(&view, kind).count();
    let health = StatusDocument::of(&api.decider, api.phase.now()).await;
    let store = api.decider.limiter().store();
    Ok(AdminReply::ok(ServerStatus {
        status: health.status,
        reasons: health.reasons,
        version: view.version.clone(),
        program: env!("CARGO_PKG_VERSION"),
        time_zones: ZoneData::current().version(),
        mode: health.configuration.mode,
        served: ServedCounts {
            policies: count(DocumentKind::Policy),
            guards: count(DocumentKind::Guard),
            routes: count(DocumentKind::Route),
            limits: limits::count_by_mode(&view),
        },
        sources: sources(api),
        store: StoreSummary {
            kind: store.kind(),
            status: health.store.status(),
            nodes: store.nodes(),
        },
        instances: instances(api).await,
        lists: health.lists,
        plans: health.plans,
    }))
}

/// Returns the caller.
pub(in super::super) async fn whoami(_: &Api, call: &AdminCall) -> ReplyResult<CallerInfo> {
    let caller = &call.caller;
    Ok(AdminReply::ok(CallerInfo {
        name: caller.name.to_string(),
        role: caller.role.as_str(),
    }))
}

/// Reloads the file and all sources.
pub(in super::super) async fn reload(api: &Api, call: &AdminCall) -> ReplyResult<ReloadReport> {
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
            Err(ReloadError::Invalid(errors)) => AdminProblem::invalid_config(&errors),
            Err(ReloadError::Unservable(why)) => AdminProblem::unprocessable(why),
            Err(ReloadError::Unread(why)) => AdminProblem::unavailable(why),
            Err(refused @ ReloadError::BuiltIn) => AdminProblem::conflict(refused.to_string()),
        };
        // The valid sources are served, even if others are invalid.
        Err(if before == after {
            refusal
        } else {
            refusal.with_change(AuditOutcome::PartlyRefused, change)
        })
    };
    let version = api.change(call, reload).await?;
    let sources = sources(api);
    Ok(AdminReply::ok(ReloadReport { version, sources }))
}

fn sources(api: &Api) -> Vec<SourceItem> {
    let sources = api.composer.source_views();
    sources.into_iter().map(SourceItem::of).collect()
}

/// Returns the instances that share the store, and the configuration version of each, as far as known.
async fn instances(api: &Api) -> InstanceList {
    let instances = api.decider.limiter().instances();
    // While Redis is unreachable, the number is the last known one, and only known instances are listed.
    let roll = match instances {
        Some(instances) => instances.roll(PATIENCE).await.ok().flatten(),
        None => None,
    };
    let all = roll.iter().flat_map(|roll| &roll.instances);
    InstanceList {
        counted: roll.is_some(),
        this: instances.map(|it| it.id().to_owned()),
        live: instances.map_or(1, |it| it.count().load(Relaxed).max(1)),
        versions_agree: roll.as_ref().and_then(agree),
        all: all.map(InstanceItem::of).collect(),
    }
}
