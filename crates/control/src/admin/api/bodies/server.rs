//! The caller, the status of this server, and reloads.

use crate::admin::health::body::{
    GuardListItem, InstanceItem, PlanSourceStatus, ServiceStatus, SourceItem, StoreStatus,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_config::admin::AdminRole;

/// The caller.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Caller")]
pub(crate) struct CallerInfo {
    /// The name of its credential.
    pub(crate) name: String,
    /// Its role.
    #[schemars(extend("enum" = role_words()))]
    pub(crate) role: &'static str,
}

/// The status of this server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerStatus {
    pub(crate) status: ServiceStatus,
    /// The reasons for a status other than `UP`.
    pub(crate) reasons: Vec<String>,
    /// The version of the configuration that it serves. It is the same wherever the same is served.
    pub(crate) version: String,
    /// The version of the program.
    pub(crate) program: &'static str,
    /// The release of the data of time zones.
    pub(crate) time_zones: &'static str,
    /// The mode of the whole server.
    #[schemars(extend("enum" = ["enforce", "shadow"]))]
    pub(crate) mode: &'static str,
    pub(crate) served: ServedCounts,
    /// The file and the sources, in order.
    pub(crate) sources: Vec<SourceItem>,
    pub(crate) store: StoreSummary,
    pub(crate) instances: InstanceList,
    /// The lists of guards.
    pub(crate) lists: Vec<GuardListItem>,
    /// The plan sources.
    pub(crate) plans: Vec<PlanSourceStatus>,
}

/// The numbers of documents that are served.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServedCounts {
    pub(crate) policies: usize,
    pub(crate) guards: usize,
    pub(crate) routes: usize,
    /// The number of limits in each mode.
    pub(crate) limits: BTreeMap<String, u64>,
}

/// The store.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Store")]
pub(crate) struct StoreSummary {
    /// Its kind: `memory` or `redis`.
    pub(crate) kind: &'static str,
    pub(crate) status: StoreStatus,
    /// The addresses of its nodes.
    pub(crate) nodes: Vec<String>,
}

/// The instances that share the store.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Instances")]
pub(crate) struct InstanceList {
    /// The list is known.
    pub(crate) counted: bool,
    /// The name of this instance.
    pub(crate) this: Option<String>,
    /// The highest number of instances in the last ten minutes.
    pub(crate) live: u32,
    /// All instances that announce a version announce that of this one; `null` if this one has announced none.
    pub(crate) versions_agree: Option<bool>,
    /// The known instances.
    pub(crate) all: Vec<InstanceItem>,
}

/// The result of a reload.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReloadReport {
    /// The version of the configuration that is served now.
    pub(crate) version: String,
    /// The file and the sources, in order.
    pub(crate) sources: Vec<SourceItem>,
}

fn role_words() -> Vec<&'static str> {
    AdminRole::ALL.iter().map(|(word, _)| *word).collect()
}
