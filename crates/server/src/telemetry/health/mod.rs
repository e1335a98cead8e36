//! The status of the whole server in one document: for people, dashboards and monitoring programs.
//!
//! Contains names, addresses, versions and numbers; no secrets, and no client data. The log has the reasons.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the document, and all of it but Redis |
//! | `store` | the status of Redis |

mod store;

use crate::decider::{Decider, DeciderHealth};
use crate::server::phase::Phase;
use crate::telemetry::{instances, room};
use serde_json::{Map, Value, json};
use tidegate::Store;
use tidegate::shared_state::SharedInstances;

/// The status of the server in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServiceStatus {
    /// Everything works.
    Up,
    /// Requests are answered, but a component that they depend on is unreachable or stale.
    Degraded,
    /// Requests are not answered.
    Down,
}

/// The status of the whole server.
#[derive(Debug)]
pub(crate) struct StatusDocument {
    status: ServiceStatus,
    /// The reasons for a status other than `Up`.
    reasons: Vec<String>,
    parts: Map<String, Value>,
}

impl ServiceStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Degraded => "DEGRADED",
            Self::Down => "DOWN",
        }
    }
}

impl StatusDocument {
    /// Collects the status of everything that `decider` uses, in this phase of the server.
    pub(crate) async fn of<S: Store>(decider: &Decider<S>, phase: Phase) -> Self {
        let mut document = Self {
            status: ServiceStatus::Up,
            reasons: Vec::new(),
            parts: Map::new(),
        };
        document.phase(phase);
        let standing = decider.standing().await;
        document.store(decider, standing).await;
        document.configuration(decider);
        document.instances(decider);
        document.sources(decider);
        document.loaded(decider);
        document.gateway(decider);
        document
    }

    /// Returns the status in one word.
    pub(crate) fn status(&self) -> ServiceStatus {
        self.status
    }

    /// Adds a reason, and lowers the status to `status` unless it is already worse.
    pub(crate) fn complain(&mut self, status: ServiceStatus, reason: impl Into<String>) {
        self.status = self.status.max(status);
        self.reasons.push(reason.into());
    }

    /// Adds a named part to the document.
    pub(crate) fn part(&mut self, name: &str, part: Value) {
        self.parts.insert(name.to_owned(), part);
    }

    /// Returns the document as JSON.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut whole = Map::new();
        whole.insert("status".to_owned(), self.status.word().into());
        whole.insert("reasons".to_owned(), json!(self.reasons));
        whole.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        whole.extend(self.parts.clone());
        let mut json = Value::Object(whole).to_string().into_bytes();
        json.push(b'\n');
        json
    }

    fn phase(&mut self, phase: Phase) {
        let (word, is_serving) = match phase {
            Phase::Starting => ("starting", false),
            Phase::Serving => ("serving", true),
            Phase::Leaving => ("leaving", true),
            Phase::Draining | Phase::Closing => ("draining", false),
        };
        if !is_serving {
            self.complain(ServiceStatus::Down, word);
        }
        self.part("phase", word.into());
    }

    async fn store<S: Store>(&mut self, decider: &Decider<S>, standing: DeciderHealth) {
        let status = match standing {
            DeciderHealth::Sound => ServiceStatus::Up,
            DeciderHealth::Degraded => ServiceStatus::Degraded,
            DeciderHealth::Stuck => ServiceStatus::Down,
        };
        if status != ServiceStatus::Up {
            self.complain(status, "store");
        }
        let word = if status == ServiceStatus::Up {
            "UP"
        } else {
            "DOWN"
        };
        let health = decider.limiter().store_health();
        let store = match decider.metrics().nodes() {
            None => self.memory(decider, word).await,
            Some(nodes) => {
                let all = nodes.all();
                for node in all.iter().filter(|node| !node.calls.is_connected) {
                    self.complain(ServiceStatus::Degraded, format!("node {}", node.name));
                }
                store::of(nodes, &all, word, health.as_ref())
            }
        };
        self.part("store", store);
    }

    /// Returns the status of the memory store, which is full while new keys share overflow buckets.
    async fn memory<S: Store>(&mut self, decider: &Decider<S>, word: &str) -> Value {
        let Some(room) = &decider.metrics().room else {
            return json!({ "kind": "memory", "status": word });
        };
        let is_full = room.overflowed().is_some();
        if is_full {
            self.complain(ServiceStatus::Degraded, "store memory");
        }
        let stats = room::stats(room).await;
        json!({
            "kind": "memory",
            "status": if is_full { "FULL" } else { word },
            "slots": stats.slots,
            "buckets": stats.buckets,
            "shared": stats.shared.total(),
        })
    }

    fn configuration<S: Store>(&mut self, decider: &Decider<S>) {
        let reloads = &decider.metrics().reloads;
        let (applied, refused) = reloads.counts();
        self.part(
            "configuration",
            json!({
                "mode": mode(decider),
                "loaded_at": reloads.loaded(),
                "reloads": { "applied": applied, "refused": refused },
            }),
        );
    }

    /// Adds the instances that share the store, as last seen. Every change starts with a moment in which they
    /// differ, so a difference is shown but is no reason for a worse status: monitoring over time decides if
    /// it lasts too long.
    fn instances<S: Store>(&mut self, decider: &Decider<S>) {
        let instances = decider.limiter().instances();
        let Some(roll) = instances.and_then(SharedInstances::heard) else {
            return;
        };
        let each = roll.instances.iter().map(|it| {
            let serves = it.serves.as_ref();
            json!({
                "name": it.name,
                "this": it.is_this,
                "version": serves.map(|it| &it.version),
                "program": serves.map(|it| &it.program),
                "heard_seconds": it.heard.as_secs(),
                "applied_seconds": serves.map(|it| it.since.as_secs()),
            })
        });
        let each: Vec<Value> = each.collect();
        let agree = instances::agree(&roll);
        self.part("instances", json!({ "versions_agree": agree, "all": each }));
    }

    /// Adds the status of the config sources.
    fn sources<S: Store>(&mut self, decider: &Decider<S>) {
        let mut sources = Vec::new();
        for source in decider.metrics().sources.sources() {
            let standing = source.standing();
            let word = match &standing {
                // A source on its fallback was never fetched, so there is nothing that could be stale.
                it if it.is_stale && !it.is_fallback => "STALE",
                it if it.is_refused => "REFUSED",
                it if it.is_fallback => "FALLBACK",
                _ => "UP",
            };
            if word != "UP" {
                self.complain(ServiceStatus::Degraded, format!("source {}", standing.name));
            }
            sources.push(json!({
                "name": standing.name,
                "kind": standing.kind,
                "status": word,
                "version": standing.version,
                "age_seconds": standing.age.map(|age| age.as_secs()),
                "error": standing.trouble,
            }));
        }
        if !sources.is_empty() {
            self.part("sources", sources.into());
        }
    }

    /// Adds the status of lists and plans.
    fn loaded<S: Store>(&mut self, decider: &Decider<S>) {
        let limiter = decider.limiter();
        let mut lists = Vec::new();
        for list in limiter.lists() {
            let is_fresh = list.failing_for.is_none();
            if !is_fresh {
                self.complain(ServiceStatus::Degraded, format!("list {}", list.guard));
            }
            lists.push(json!({
                "guard": list.guard,
                "status": if list.enabled { word(is_fresh) } else { "OFF" },
                "members": list.members,
                "age_seconds": list.age.map(|age| age.as_secs()),
                "error": list.error,
            }));
        }
        if !lists.is_empty() {
            self.part("lists", lists.into());
        }
        let mut plans = Vec::new();
        for plan in limiter.plans() {
            let is_fresh = plan.failing_for.is_none();
            if !is_fresh {
                self.complain(ServiceStatus::Degraded, format!("plans {}", plan.name));
            }
            plans.push(json!({
                "name": plan.name,
                "kind": plan.kind,
                "status": word(is_fresh),
                "subjects": plan.subjects,
                "age_seconds": plan.age.map(|age| age.as_secs()),
                "error": plan.error,
            }));
        }
        if !plans.is_empty() {
            self.part("plans", plans.into());
        }
    }

    fn gateway<S: Store>(&mut self, decider: &Decider<S>) {
        let upstreams = decider.metrics().gateway.upstreams();
        if upstreams.is_empty() {
            return;
        }
        let mut shown = Vec::new();
        for (route, upstream, is_in, in_flight) in upstreams {
            if !is_in {
                self.complain(
                    ServiceStatus::Degraded,
                    format!("upstream {upstream} of {route}"),
                );
            }
            shown.push(json!({
                "route": route,
                "upstream": upstream,
                "status": if is_in { "UP" } else { "OUT" },
                "in_flight": in_flight,
            }));
        }
        self.part("upstreams", shown.into());
    }
}

fn word(is_fresh: bool) -> &'static str {
    if is_fresh { "UP" } else { "STALE" }
}

/// Returns the mode of the whole configuration.
pub(crate) fn mode<S: Store>(decider: &Decider<S>) -> &'static str {
    if decider.is_shadow() {
        "shadow"
    } else {
        "enforce"
    }
}
