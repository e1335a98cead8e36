//! Banned clients: the members of the Redis lists of all enabled guards that deny.

use super::buckets::config;
use super::members::{GuardInConfig, MEMBERS_MAX, hides, shown};
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::page;
use crate::doors::admin::api::respond::{AdminProblem, Done};
use serde_json::json;
use tidegate_policy::guard::{GuardEffect, ListOrigin};

/// A banned client.
struct ListedBan {
    guard: String,
    member: String,
    ends_in_ms: Option<u64>,
}

/// Lists all banned clients, guard by guard.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let busy = || AdminProblem::away("others are at it: try again");
    let _walk = api.walks.try_acquire().map_err(|_| busy())?;
    let config = config(api).await?;
    if let Some(wanted) = call.query.text("guard")
        && !config.guards.iter().any(|guard| guard.name == wanted)
    {
        return Err(AdminProblem::bad("query.guard", "there is no such guard"));
    }
    let count = config.guards.iter().count();
    let mut found = GuardInConfig { config, at: 0 };
    let mut bans = Vec::new();
    for at in 0..count {
        found.at = at;
        read(api, call, &found, &mut bans).await?;
        if bans.len() > MEMBERS_MAX {
            let why = format!("there are more than {MEMBERS_MAX}: ask for those of one `guard`");
            return Err(AdminProblem::senseless("query.guard", why));
        }
    }
    let body = page::of(
        &bans,
        &call.query,
        |ban| json!({ "guard": ban.guard, "member": ban.member, "ends_in_ms": ban.ends_in_ms }),
    );
    Ok(Done::seen(body))
}

/// Reads the clients that one guard bans.
async fn read(
    api: &Api,
    call: &AdminCall,
    found: &GuardInConfig,
    bans: &mut Vec<ListedBan>,
) -> Result<(), AdminProblem> {
    let guard = found.guard()?;
    let (wanted, prefix) = (call.query.text("guard"), call.query.text("name"));
    let keeps_out = guard.enabled
        && guard.effect == GuardEffect::Refuse
        && matches!(guard.origin, ListOrigin::Redis { .. });
    if !keeps_out || wanted.is_some_and(|wanted| wanted != guard.name) {
        return Ok(());
    }
    let hides = hides(guard);
    if hides && prefix.is_some() {
        // These are secrets, which cannot be searched for.
        return Ok(());
    }
    let set = found.set(api).await?;
    let members = set.read().await;
    set.close().await;
    for (member, ends_in_ms) in members? {
        if prefix.is_none_or(|prefix| member.starts_with(prefix)) {
            bans.push(ListedBan {
                guard: guard.name.clone(),
                member: shown(hides, &member),
                ends_in_ms,
            });
        }
    }
    Ok(())
}
