//! What the subjects of plans have: consumers, projects, whoever has a rate of its own. It is told by
//! the sources of plans, and changed there. Nobody keeps the ids of all subjects: each is asked for.

use super::buckets::config;
use super::usage::{self, User};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::Call;
use crate::doors::admin::api::page;
use crate::doors::admin::api::respond::{Done, Refusal};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate::plan::{Found, Given, Table};
use tidegate::{Config, PlanState};

/// The sources of plans, and how it stands with them.
pub(in super::super) async fn list(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let states = api.decider.limiter().plans();
    let config = config(api).await?;
    let body = page::of(&states, &call.query, |state| item(state, &config));
    Ok(Done::seen(body))
}

/// One subject.
pub(in super::super) async fn get(api: &Api, call: &Call) -> Result<Done, Refusal> {
    let table = table(api, call)?;
    let name = call.param("subject");
    let hides = hides(api, call.param("plan")).await?;
    let shown = if hides { "***" } else { name };
    let found = table
        .get(name)
        .ok_or_else(|| Refusal::unknown("subject", shown))?;
    Ok(Done::seen(subject(&table, shown, &found)))
}

fn table(api: &Api, call: &Call) -> Result<Arc<Table>, Refusal> {
    let name = call.param("plan");
    let limiter = api.decider.limiter();
    if !limiter.plans().iter().any(|state| state.name == name) {
        return Err(Refusal::unknown("plan", name));
    }
    let unread = || Refusal::away("these plans have never been loaded");
    let rules = limiter.rules().map_err(|_| Refusal::failed())?;
    rules.plan_table(name).ok_or_else(unread)
}

/// Whether subjects are known by secrets, such as API keys.
async fn hides(api: &Api, name: &str) -> Result<bool, Refusal> {
    let config = config(api).await?;
    let number = config.plans.iter().position(|source| source.name == name);
    let limits = config.written().flat_map(|policy| &policy.limits);
    let mut plans = limits.filter_map(|limit| limit.plan.as_ref());
    Ok(plans.any(|plan| Some(plan.source) == number && plan.hides_subject()))
}

fn subject(table: &Table, name: &str, found: &Found<'_>) -> Value {
    let rate = match found.given {
        Given::Rate(number) => {
            let rate = usize::try_from(number)
                .ok()
                .and_then(|at| table.rates().get(at));
            rate.map(ToString::to_string)
        }
        Given::Unlimited => Some("unlimited".to_owned()),
        Given::Nothing => Some("refuse".to_owned()),
    };
    json!({
        "subject": name,
        "rate": rate,
        "group": found.group,
        "is_default": found.is_unset,
    })
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
    json!({
        "name": state.name,
        "kind": state.kind,
        "subjects": state.subjects,
        "groups": state.groups,
        "age_ms": state.age.map(millis),
        "failing_for_ms": state.failing_for.map(millis),
        "error": state.error,
        "used_by": usage::shown(users(config, &state.name)),
    })
}
