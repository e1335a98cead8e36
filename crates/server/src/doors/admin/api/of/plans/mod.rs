//! The subjects of plans, such as consumers and projects, and their rates. They come from plan sources.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the sources, and their status |
//! | `entries` | plans, groups and subjects: list, read, create, change, remove |
//! | `place` | the source and the entry that a call names |
//! | `changing` | changes of an entry: validation with all others, write, serve |
//!
//! A server keeps loaded plans under keyed hashes, not under the ids of the subjects. So entries are
//! listed from a document store, which keeps them by name; entries of other sources can only be read one
//! by one.

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

/// The modes that an entry can be set to.
pub(in super::super) const OF_ENTRIES: [&str; 2] = ["on", "off"];

/// Lists the plan sources, with their status.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let states = api.decider.limiter().plans();
    let config = config(api).await?;
    let body = page::of(&states, &call.query, |state| item(state, &config));
    Ok(Done::seen(body))
}

/// Returns the limits whose rates come from a source.
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
