//! The bodies of `/status`. The admin API reports sources, lists, plans and instances with the same types,
//! so that both use the same words.
//!
//! Comments of types and fields are descriptions in the `OpenAPI` document.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::shared_state::Instance;
use tidegate::{ListStatus, PlanState, SnapshotStatus};
use tidegate_telemetry::source_health::SourceView;

/// The status of the whole server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Health")]
pub(crate) struct StatusDocument {
    pub(crate) status: ServiceStatus,
    /// The reasons for a status other than `UP`.
    pub(crate) reasons: Vec<String>,
    /// The version of the program.
    pub(crate) program: &'static str,
    /// The release of the data of time zones.
    pub(crate) time_zones: &'static str,
    /// The phase of the process.
    #[schemars(extend("enum" = ["starting", "serving", "leaving", "draining"]))]
    pub(crate) phase: &'static str,
    pub(crate) store: StoreReport,
    pub(crate) configuration: ConfigurationReport,
    /// The instances that share the store; absent if they are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instances: Option<InstanceReport>,
    /// The file and the sources of the configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<SourceItem>,
    /// The lists of guards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lists: Vec<GuardListItem>,
    /// The plan sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) plans: Vec<PlanSourceStatus>,
    /// The upstreams of the gateway's enabled routes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) upstreams: Vec<UpstreamItem>,
}

/// The status of a server in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ServiceStatus {
    /// Everything works.
    Up,
    /// Requests are answered, but a component that they depend on is unreachable or stale.
    Degraded,
    /// Requests are not answered.
    Down,
}

/// The status of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum StoreStatus {
    /// The store responds.
    Up,
    /// The store does not respond. `on_failure` of each limit applies.
    Down,
    /// The memory store is full. New keys share buckets.
    Full,
}

/// The status of a server that this one calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum PeerStatus {
    /// It gets requests.
    Up,
    /// It is unreachable, unhealthy or ejected.
    Down,
}

/// The status of a config source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum SourceStatus {
    /// Its current version is served.
    Up,
    /// It cannot be loaded. Its previous version is served.
    Stale,
    /// Its current version is invalid. Its previous version is served.
    Rejected,
    /// It has never responded. Its `fallback` is served.
    Fallback,
}

/// The status of a list, of plans or of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum LoadStatus {
    /// The last load, or the last write of a snapshot, succeeded.
    Up,
    /// The last load or write failed. The last good version stays in force.
    Stale,
    /// Its guard has `mode: off`, so it is not loaded.
    Off,
}

/// The store.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[schemars(rename = "StoreHealth")]
pub(crate) enum StoreReport {
    /// Buckets in memory.
    Memory(MemoryReport),
    /// Buckets in Redis.
    Redis(RedisReport),
}

/// Buckets in memory.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "MemoryHealth")]
pub(crate) struct MemoryReport {
    pub(crate) status: StoreStatus,
    /// The share of room that is used; absent if the store does not report it.
    #[serde(flatten)]
    pub(crate) room: Option<MemoryRoom>,
    /// The file that keeps the buckets over a restart; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<SnapshotReport>,
}

/// The snapshot of a memory store.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub(crate) struct SnapshotReport {
    pub(crate) status: LoadStatus,
    /// The time of charges that a crash would lose now.
    pub(crate) age_ms: u64,
    /// The number of buckets in the file.
    pub(crate) buckets: u64,
    /// The size of the file.
    pub(crate) bytes: u64,
    /// The number of buckets that this process started with.
    pub(crate) restored: u64,
    /// The reason, if the last write failed.
    pub(crate) error: Option<String>,
}

impl SnapshotReport {
    /// Returns the report of a snapshot.
    pub(crate) fn of(snapshot: SnapshotStatus) -> Self {
        Self {
            status: match &snapshot.error {
                None => LoadStatus::Up,
                Some(_) => LoadStatus::Stale,
            },
            age_ms: u64::try_from(snapshot.age.as_millis()).unwrap_or(u64::MAX),
            buckets: snapshot.buckets,
            bytes: snapshot.bytes,
            restored: snapshot.restored,
            error: snapshot.error,
        }
    }
}

/// The use of the memory store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MemoryRoom {
    /// The number of slots of the table.
    pub(crate) slots: usize,
    /// The number of buckets that are in use.
    pub(crate) buckets: usize,
    /// The number of checks since the start that a shared bucket decided.
    pub(crate) shared: u64,
}

/// Buckets in Redis.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RedisHealth")]
pub(crate) struct RedisReport {
    pub(crate) status: StoreStatus,
    /// The topology: `standalone`, `sentinel` or `cluster`.
    pub(crate) topology: String,
    /// The number of calls that Redis answered since the start.
    pub(crate) calls: u64,
    pub(crate) latency_ms_at_most: LatencyBounds,
    /// The number of errors since the start by kind, without zeros.
    pub(crate) errors: Option<BTreeMap<&'static str, u64>>,
    /// The nodes, at most 64. The rest is one more, `other`.
    pub(crate) nodes: Vec<RedisNodeItem>,
}

/// Percentiles of all calls since the start, as upper bounds of histogram buckets.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LatencyBounds {
    /// The median.
    pub(crate) p50: Option<f64>,
    /// The 95th percentile.
    pub(crate) p95: Option<f64>,
    /// The 99th percentile.
    pub(crate) p99: Option<f64>,
}

/// A node of Redis.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RedisNode")]
pub(crate) struct RedisNodeItem {
    /// Its address, or `other`.
    pub(crate) address: String,
    pub(crate) status: PeerStatus,
    /// Its circuit breaker is closed, so it gets calls.
    pub(crate) circuit_closed: bool,
    /// The number of calls that failed or timed out.
    pub(crate) failed: u64,
    /// Its last response to `INFO`; absent if there is none.
    #[serde(flatten)]
    pub(crate) info: Option<RedisNodeInfo>,
}

/// A node's response to `INFO`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RedisNodeInfo {
    /// The latency of the call.
    pub(crate) latency_ms: f64,
    /// The product and its version.
    pub(crate) version: String,
    /// Its role: `master` or `slave`.
    pub(crate) role: String,
    /// The memory in use.
    pub(crate) memory_used_bytes: Option<u64>,
    /// The memory that it may use.
    pub(crate) memory_max_bytes: Option<u64>,
    /// The number of keys.
    pub(crate) keys: u64,
    /// The number of its connections.
    pub(crate) clients: Option<u64>,
    /// The number of its replicas.
    pub(crate) replicas: Option<u64>,
    /// Its load.
    pub(crate) operations_per_second: Option<u64>,
}

/// The configuration that is served.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Configuration")]
pub(crate) struct ConfigurationReport {
    /// The mode of the whole server.
    #[schemars(extend("enum" = ["enforce", "shadow"]))]
    pub(crate) mode: &'static str,
    /// The time at which it was loaded, in seconds since 1970.
    pub(crate) loaded_at: i64,
    pub(crate) reloads: ReloadCounts,
}

/// The number of reloads since the start.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReloadCounts {
    /// Those that took effect.
    pub(crate) applied: u64,
    /// Those that changed nothing, because the configuration was invalid.
    pub(crate) rejected: u64,
}

/// The instances that share the store, as last seen.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SeenInstances")]
pub(crate) struct InstanceReport {
    /// All instances that announce a version announce that of this one; `null` if this one has announced none.
    pub(crate) versions_agree: Option<bool>,
    /// The known instances.
    pub(crate) all: Vec<InstanceItem>,
}

/// An upstream of a route.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Upstream")]
pub(crate) struct UpstreamItem {
    /// The route.
    pub(crate) route: String,
    /// The upstream.
    pub(crate) upstream: String,
    pub(crate) status: PeerStatus,
    /// The number of its requests in flight.
    pub(crate) in_flight: u64,
}

/// A source of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Source")]
pub(crate) struct SourceItem {
    /// Its name.
    pub(crate) name: String,
    /// Its kind, such as `file` or `redis`.
    pub(crate) kind: &'static str,
    pub(crate) status: SourceStatus,
    /// Its documents can be changed by the admin API.
    pub(crate) writable: bool,
    /// The version that is served.
    pub(crate) version: Option<String>,
    /// The time since its last response; `null` if it never responded.
    pub(crate) age_ms: Option<u64>,
    /// The time since the served version was applied.
    pub(crate) applied_ms: Option<u64>,
    /// The reason of a status other than `UP`.
    pub(crate) error: Option<String>,
}

/// An instance.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Instance")]
pub(crate) struct InstanceItem {
    /// Its name, which is random.
    pub(crate) name: String,
    /// It is the one that answers.
    pub(crate) this: bool,
    /// The first digits of the version that it serves.
    pub(crate) version: Option<String>,
    /// The version of its program.
    pub(crate) program: Option<String>,
    /// The release of its data of time zones.
    pub(crate) time_zones: Option<String>,
    /// The time since its last report.
    pub(crate) last_seen_ms: u64,
    /// The time since it has served its version.
    pub(crate) applied_ms: Option<u64>,
}

/// The list of a guard.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "GuardList")]
pub(crate) struct GuardListItem {
    /// The guard.
    pub(crate) guard: String,
    pub(crate) status: LoadStatus,
    /// The number of members.
    pub(crate) members: usize,
    /// The number of invalid entries.
    pub(crate) skipped: usize,
    /// The time since the list was last read; `null` if never.
    pub(crate) age_ms: Option<u64>,
    /// The time for which reads have failed, if the last one did.
    pub(crate) failing_for_ms: Option<u64>,
    /// The reason of the failure.
    pub(crate) error: Option<String>,
}

/// The status of a plan source.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanSourceStatus {
    /// Its name.
    pub(crate) name: String,
    /// Its kind, such as `file` or `redis`.
    pub(crate) kind: &'static str,
    pub(crate) status: LoadStatus,
    /// The number of subjects.
    pub(crate) subjects: usize,
    /// The time since it was last loaded, or found unchanged; `null` if never.
    pub(crate) age_ms: Option<u64>,
    /// The time for which loads have failed, if the last one did.
    pub(crate) failing_for_ms: Option<u64>,
    /// The reason of the failure.
    pub(crate) error: Option<String>,
}

impl StoreReport {
    /// Returns the status in one word.
    pub(crate) fn status(&self) -> StoreStatus {
        match self {
            Self::Memory(it) => it.status,
            Self::Redis(it) => it.status,
        }
    }
}

impl PeerStatus {
    /// Returns `UP` if it gets requests.
    pub(crate) fn of(is_up: bool) -> Self {
        if is_up { Self::Up } else { Self::Down }
    }
}

impl SourceItem {
    /// Describes a source.
    pub(crate) fn of(source: SourceView) -> Self {
        let status = match &source {
            // A source on its fallback was never fetched, so there is nothing that could be stale.
            it if it.is_stale && !it.is_fallback => SourceStatus::Stale,
            it if it.is_refused => SourceStatus::Rejected,
            it if it.is_fallback => SourceStatus::Fallback,
            _ => SourceStatus::Up,
        };
        Self {
            name: source.name,
            kind: source.kind,
            status,
            writable: source.is_writable,
            version: source.version,
            age_ms: source.age.map(millis),
            applied_ms: source.applied.map(millis),
            error: source.error,
        }
    }
}

impl InstanceItem {
    /// Describes an instance.
    pub(crate) fn of(instance: &Instance) -> Self {
        let serves = instance.serves.as_ref();
        Self {
            name: instance.name.clone(),
            this: instance.is_this,
            version: serves.map(|it| it.version.clone()),
            program: serves.map(|it| it.program.clone()),
            time_zones: serves.and_then(|it| it.zones.clone()),
            last_seen_ms: millis(instance.heard),
            applied_ms: serves.map(|it| millis(it.since)),
        }
    }
}

impl GuardListItem {
    /// Describes a list.
    pub(crate) fn of(list: ListStatus) -> Self {
        Self {
            guard: list.guard,
            status: if list.enabled {
                LoadStatus::of(list.failing_for)
            } else {
                LoadStatus::Off
            },
            members: list.members,
            skipped: list.skipped,
            age_ms: list.age.map(millis),
            failing_for_ms: list.failing_for.map(millis),
            error: list.error,
        }
    }
}

impl PlanSourceStatus {
    /// Describes a plan source.
    pub(crate) fn of(state: &PlanState) -> Self {
        Self {
            name: state.name.clone(),
            kind: state.kind,
            status: LoadStatus::of(state.failing_for),
            subjects: state.subjects,
            age_ms: state.age.map(millis),
            failing_for_ms: state.failing_for.map(millis),
            error: state.error.clone(),
        }
    }
}

impl LoadStatus {
    fn of(failing_for: Option<Duration>) -> Self {
        match failing_for {
            None => Self::Up,
            Some(_) => Self::Stale,
        }
    }
}

/// Returns a time in milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
