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
use crate::admin::api::Api;
use crate::admin::api::bodies::DocumentUser;
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::bodies::plans::PlanSourceItem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::admin::health::body::PlanSourceStatus;
use tidegate::{Config, PlanState};

/// Lists the plan sources, with their status.
pub(in super::super) async fn list(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<PlanSourceItem>> {
    let states = api.decider.limiter().plans();
    let config = config(api).await?;
    let page = ListPage::of(&states, &call.query, |state| item(state, &config));
    Ok(AdminReply::ok(page))
}

/// Returns the limits whose rates come from a source.
fn users(config: &Config, name: &str) -> Vec<DocumentUser> {
    let number = config.plans.iter().position(|source| source.name == name);
    let policies = config.written();
    let limits = policies.flat_map(|policy| policy.limits.iter().map(move |it| (policy, it)));
    let users = limits.filter(|(_, limit)| {
        let plan = limit.plan.as_ref();
        plan.is_some_and(|plan| Some(plan.source) == number)
    });
    users
        .map(|(policy, limit)| {
            DocumentUser::new("limit", format!("{}/{}", policy.name, limit.name))
        })
        .collect()
}

fn item(state: &PlanState, config: &Config) -> PlanSourceItem {
    let source = config.plans.iter().find(|source| source.name == state.name);
    let shelf = source.and_then(|source| source.shelf());
    PlanSourceItem {
        status: PlanSourceStatus::of(state),
        writable: shelf.is_some_and(|it| it.writable),
        groups: state.groups,
        used_by: users(config, &state.name),
    }
}
