//! The status of the whole server in one document: for people, dashboards and monitoring programs.
//!
//! Contains names, addresses, versions and numbers; no secrets, and no client data. The log has the reasons.
//!
//! | module | what it is |
//! |---|---|
//! | this one | collects the document |
//! | `body` | the types of its parts, which make the JSON and the schemas |
//! | `store` | the status of Redis |

pub(crate) mod body;
mod store;

use body::{
    ConfigurationReport, GuardListItem, InstanceItem, InstanceReport, LoadStatus, MemoryReport,
    MemoryRoom, PeerStatus, PlanSourceStatus, ReloadCounts, ServiceStatus, SnapshotReport,
    SourceItem, SourceStatus, StatusDocument, StoreReport, StoreStatus, UpstreamItem,
};
use tidegate::Store;
use tidegate::shared_state::SharedInstances;
use tidegate_frontends::decider::{Decider, DeciderHealth};
use tidegate_net::phase::Phase;
use tidegate_policy::calendar::ZoneData;
use tidegate_telemetry::{instances, room};

/// The status so far, and the reasons for it.
struct StatusReasons {
    status: ServiceStatus,
    reasons: Vec<String>,
}

impl StatusReasons {
    /// Adds a reason, and lowers the status to `status` unless it is already worse.
    fn add(&mut self, status: ServiceStatus, reason: impl Into<String>) {
        self.status = self.status.max(status);
        self.reasons.push(reason.into());
    }

    fn degrade(&mut self, reason: String) {
        self.add(ServiceStatus::Degraded, reason);
    }
}

impl StatusDocument {
    /// Collects the status of everything that `decider` uses, in this phase of the server.
    pub(crate) async fn of<S: Store>(decider: &Decider<S>, phase: Phase) -> Self {
        let mut complaints = StatusReasons {
            status: ServiceStatus::Up,
            reasons: Vec::new(),
        };
        let complaints = &mut complaints;
        let phase = self::phase(phase, complaints);
        let store = store(decider, complaints).await;
        let sources = sources(decider, complaints);
        let lists = lists(decider, complaints);
        let plans = plans(decider, complaints);
        let upstreams = upstreams(decider, complaints);
        Self {
            status: complaints.status,
            reasons: std::mem::take(&mut complaints.reasons),
            program: env!("CARGO_PKG_VERSION"),
            time_zones: ZoneData::current().version(),
            phase,
            store,
            configuration: configuration(decider),
            instances: instances(decider),
            sources,
            lists,
            plans,
            upstreams,
        }
    }
}

fn phase(phase: Phase, complaints: &mut StatusReasons) -> &'static str {
    let (word, is_serving) = match phase {
        Phase::Starting => ("starting", false),
        Phase::Serving => ("serving", true),
        Phase::Leaving => ("leaving", true),
        Phase::Draining | Phase::Closing => ("draining", false),
    };
    if !is_serving {
        complaints.add(ServiceStatus::Down, word);
    }
    word
}

async fn store<S: Store>(decider: &Decider<S>, complaints: &mut StatusReasons) -> StoreReport {
    let (service, status) = match decider.status().await {
        DeciderHealth::Sound => (ServiceStatus::Up, StoreStatus::Up),
        DeciderHealth::Degraded => (ServiceStatus::Degraded, StoreStatus::Down),
        DeciderHealth::Stuck => (ServiceStatus::Down, StoreStatus::Down),
    };
    if service != ServiceStatus::Up {
        complaints.add(service, "store");
    }
    let Some(nodes) = decider.metrics().nodes() else {
        return StoreReport::Memory(memory(decider, status, complaints).await);
    };
    let all = nodes.all();
    for node in all.iter().filter(|node| !node.calls.is_connected) {
        complaints.degrade(format!("node {}", node.name));
    }
    let health = decider.limiter().store_health();
    StoreReport::Redis(store::of(nodes, all, status, health.as_ref()))
}

/// Returns the status of the memory store, which is full while new keys share overflow buckets.
async fn memory<S: Store>(
    decider: &Decider<S>,
    status: StoreStatus,
    complaints: &mut StatusReasons,
) -> MemoryReport {
    let snapshot = decider.limiter().snapshot().map(SnapshotReport::of);
    if snapshot.as_ref().is_some_and(|it| it.error.is_some()) {
        complaints.degrade("snapshot".to_owned());
    }
    let Some(room) = &decider.metrics().room else {
        return MemoryReport {
            status,
            room: None,
            snapshot,
        };
    };
    let is_full = room.overflowed().is_some();
    if is_full {
        complaints.degrade("store memory".to_owned());
    }
    let used = room::stats(room).await;
    MemoryReport {
        status: if is_full { StoreStatus::Full } else { status },
        room: Some(MemoryRoom {
            slots: used.slots,
            buckets: used.buckets,
            shared: used.shared.total(),
        }),
        snapshot,
    }
}

fn configuration<S: Store>(decider: &Decider<S>) -> ConfigurationReport {
    let reloads = &decider.metrics().reloads;
    let (applied, rejected) = reloads.counts();
    ConfigurationReport {
        mode: mode(decider),
        loaded_at: reloads.loaded(),
        reloads: ReloadCounts { applied, rejected },
    }
}

/// Returns the instances that share the store, as last seen. Every change starts with a moment in which they
/// differ, so a difference is shown but is no reason for a worse status: monitoring over time decides if
/// it lasts too long.
fn instances<S: Store>(decider: &Decider<S>) -> Option<InstanceReport> {
    let instances = decider.limiter().instances();
    let roll = instances.and_then(SharedInstances::last_roll)?;
    Some(InstanceReport {
        versions_agree: instances::agree(&roll),
        all: roll.instances.iter().map(InstanceItem::of).collect(),
    })
}

fn sources<S: Store>(decider: &Decider<S>, complaints: &mut StatusReasons) -> Vec<SourceItem> {
    let sources = decider.metrics().sources.sources();
    let sources = sources.iter().map(|source| SourceItem::of(source.status()));
    let sources: Vec<SourceItem> = sources.collect();
    for source in sources.iter().filter(|it| it.status != SourceStatus::Up) {
        complaints.degrade(format!("source {}", source.name));
    }
    sources
}

fn lists<S: Store>(decider: &Decider<S>, complaints: &mut StatusReasons) -> Vec<GuardListItem> {
    let lists = decider.limiter().lists();
    let lists: Vec<GuardListItem> = lists.into_iter().map(GuardListItem::of).collect();
    for list in lists.iter().filter(|it| it.status == LoadStatus::Stale) {
        complaints.degrade(format!("list {}", list.guard));
    }
    lists
}

fn plans<S: Store>(decider: &Decider<S>, complaints: &mut StatusReasons) -> Vec<PlanSourceStatus> {
    let plans = decider.limiter().plans();
    let plans: Vec<PlanSourceStatus> = plans.iter().map(PlanSourceStatus::of).collect();
    for plan in plans.iter().filter(|it| it.status == LoadStatus::Stale) {
        complaints.degrade(format!("plans {}", plan.name));
    }
    plans
}

fn upstreams<S: Store>(decider: &Decider<S>, complaints: &mut StatusReasons) -> Vec<UpstreamItem> {
    let mut items = Vec::new();
    for (route, upstream, is_in, in_flight) in decider.metrics().gateway.upstreams() {
        if !is_in {
            complaints.degrade(format!("upstream {upstream} of {route}"));
        }
        items.push(UpstreamItem {
            route,
            upstream,
            status: PeerStatus::of(is_in),
            in_flight,
        });
    }
    items
}

/// Returns the mode of the whole configuration.
pub fn mode<S: Store>(decider: &Decider<S>) -> &'static str {
    if decider.is_shadow() {
        "shadow"
    } else {
        "enforce"
    }
}
