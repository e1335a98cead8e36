//! What the subjects of plans have: consumers, projects, whoever has a rate of its own. It is told by
//! the sources of plans.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the sources, and how it stands with them |
//! | `entries` | plans, groups and subjects: looked at, made, changed, removed |
//! | `place` | which source and which entry a call is about |
//! | `changing` | how an entry is changed: validated with all others, written, and served |
//!
//! Whatever a server has loaded, it keeps under keyed marks, and not by the ids of all subjects. So they
//! are listed from where they are kept by name, which is a shelf; those of other sources are asked for
//! one by one.

mod changing;
mod entries;
mod place;

pub(in super::super) use entries::{assign, change, create, get, list_entries, remove, turn};
pub(in super::super) use place::LEVELS;

use super::buckets::config;
use super::usage::{self, User};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::page;
use crate::doors::admin::api::respond::{AdminProblem, Done};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate::{Config, PlanState};

/// What an entry can be turned to.
pub(in super::super) const OF_ENTRIES: [&str; 2] = ["on", "off"];

/// The sources of plans, and how it stands with them.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let states = api.decider.limiter().plans();
    let config = config(api).await?;
    let body = page::of(&states, &call.query, |state| item(state, &config));
    Ok(Done::seen(body))
}

/// The limits whose rates come from a source.
fn users(config: &Config, name: &str) -> Vec<User> {
    let number = config.plans.iter().position(|source| source.name == name);
    let policies = config.written();
    let limits = policies.flat_map(|policy| policy.limits.iter().map(move |it| (policy, it)));
    let users = limits.filter(|(_, limit)| {
        let plan = limit.plan.as_ref();
        plan.is_some_and(|plan| Some(plan.source) == number)
    });
    users
        .map(|(policy, limit)| ("limit", format!("{}/{}", policy.name, limit.name)))
        .collect()
}

fn item(state: &PlanState, config: &Config) -> Value {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let source = config.plans.iter().find(|source| source.name == state.name);
    let shelf = source.and_then(|source| source.shelf());
    json!({
        "name": state.name,
        "kind": state.kind,
        "writable": shelf.is_some_and(|it| it.writable),
        "subjects": state.subjects,
        "groups": state.groups,
        "age_ms": state.age.map(millis),
        "failing_for_ms": state.failing_for.map(millis),
        "error": state.error,
        "used_by": usage::shown(users(config, &state.name)),
    })
}
