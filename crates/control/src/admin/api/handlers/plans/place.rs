//! The plan source and the level that a call names.

use crate::admin::api::Api;
use crate::admin::api::handlers::buckets::config;
use crate::admin::api::handlers::members::shown;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::routing::call::AdminCall;
use crate::docstore::DocumentStore;
use crate::sources::entries::PlanEntries;
use std::sync::Arc;
use std::time::Duration;
use tidegate::plan::{PlanLevel, PlanSource, PlanTable};
use tidegate_frontends::wire::fault::quote;
use tidegate_net::tasks::blocking;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

/// The levels of plans, as named in paths.
pub(in super::super::super) const LEVELS: [&str; 3] = ["plans", "groups", "subjects"];

/// The time to wait for other calls that scan plans.
const TURN_TIME: Duration = Duration::from_secs(5);

/// A plan source, and one of its levels.
#[derive(Debug)]
pub(super) struct PlanLocation {
    pub(super) source: PlanSource,
    pub(super) level: PlanLevel,
    /// Subjects are identified by secrets, such as API keys.
    pub(super) hides: bool,
}

impl PlanLocation {
    /// Returns the location that a call names.
    pub(super) async fn of(api: &Api, call: &AdminCall) -> Result<Self, AdminProblem> {
        let name = call.param("plan");
        let config = config(api).await?;
        let number = config.plans.iter().position(|source| source.name == name);
        let unknown = || AdminProblem::not_found("plan source", name);
        let number = number.ok_or_else(unknown)?;
        let word = call.param("level");
        let level = PlanLevel::ALL.into_iter().find(|it| it.plural() == word);
        let level = level.ok_or_else(|| AdminProblem::not_found("level of plans", word))?;
        let limits = config.written().flat_map(|policy| &policy.limits);
        let mut plans = limits.filter_map(|limit| limit.plan.as_ref());
        let hides = plans.any(|plan| plan.source == number && plan.hides_subject());
        let source = config.plans.get(number).cloned().ok_or_else(unknown)?;
        Ok(Self {
            source,
            level,
            hides,
        })
    }

    /// Returns an id, masked if it is a secret.
    pub(super) fn shown(&self, level: PlanLevel, id: &str) -> String {
        shown(self.hides && level == PlanLevel::Subject, id)
    }

    /// Returns true if ids of this level are secrets.
    pub(super) fn is_secret(&self) -> bool {
        self.hides && self.level == PlanLevel::Subject
    }

    /// Returns the name of an entry in the audit log.
    pub(super) fn target(&self, id: &str) -> String {
        let (name, level) = (&self.source.name, self.level.plural());
        format!("plans/{name}/{level}/{}", self.shown(self.level, id))
    }

    /// Returns the plans that this server applies.
    pub(super) fn table(&self, api: &Api) -> Option<Arc<PlanTable>> {
        let rules = api.decider.limiter().rules().ok()?;
        rules.plan_table(&self.source.name)
    }

    /// Returns the document store that has the entries by name. The error names where they are otherwise.
    pub(super) fn shelf(&self, api: &Api) -> Result<Arc<dyn DocumentStore>, AdminProblem> {
        match api.composer.serving().plans().shelf(&self.source) {
            Some(opened) => opened.map_err(AdminProblem::unavailable),
            None => Err(self.elsewhere()),
        }
    }

    /// Returns the document store that has the entries, if it is writable. The error gives the reason.
    pub(super) fn writable(&self, api: &Api) -> Result<Arc<dyn DocumentStore>, AdminProblem> {
        match self.source.shelf() {
            Some(place) if place.writable => self.shelf(api),
            _ => Err(self.elsewhere()),
        }
    }

    pub(super) fn elsewhere(&self) -> AdminProblem {
        let (name, kind) = (quote(&self.source.name), self.source.kind());
        let detail =
            format!("the plans {name} come from {kind}, which the admin API cannot change");
        let help = "the admin API lists plans in `redis`, in `etcd` and as `documents` in MongoDB, and \
                    changes them unless they set `writable: false`";
        AdminProblem::conflict(detail).with_help("source", "read-only", Some(help))
    }

    /// Reads all entries. The permit, while held, bounds how many calls scan them at once.
    pub(super) async fn read<'a>(
        &self,
        api: &'a Api,
        from: &dyn DocumentStore,
    ) -> Result<(PlanEntries, SemaphorePermit<'a>), AdminProblem> {
        let busy =
            |_| AdminProblem::unavailable("too many calls of this kind are in progress: try again");
        let turn = timeout(TURN_TIME, api.walks.acquire()).await;
        let turn = turn.map_err(busy)?.map_err(|_| AdminProblem::internal())?;
        let read = timeout(self.source.timeout, from.read(None)).await;
        let late = || AdminProblem::unavailable("the plans did not load in time: try again");
        let shelved = read.map_err(|_| late())?;
        let shelved = shelved.map_err(|trouble| AdminProblem::unavailable(trouble.0))?;
        let shelved = shelved.ok_or_else(AdminProblem::internal)?;
        let entries = blocking(move || PlanEntries::new(shelved)).await;
        let entries = entries.ok_or_else(AdminProblem::internal)?;
        let known = api.decider.limiter().plans_tag(&self.source.name);
        if entries.is_nothing() && known.is_some_and(|known| known != "0") {
            let why = "the plans and their version are missing in the source; Tidegate keeps using \
                       the last plans that it loaded. To start with no plans, set a version there";
            return Err(AdminProblem::unavailable(why));
        }
        Ok((entries, turn))
    }
}
