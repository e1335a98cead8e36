//! Banned clients: the members of the Redis lists of all enabled guards that deny.

use super::buckets::config;
use super::members::{GuardInConfig, MEMBERS_MAX, hides, shown};
use crate::admin::api::Api;
use crate::admin::api::bodies::members::BanItem;
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use tidegate_policy::guard::{GuardEffect, ListOrigin};

/// Lists all banned clients, guard by guard.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> ReplyResult<ListPage<BanItem>> {
    let busy =
        || AdminProblem::unavailable("too many calls of this kind are in progress: try again");
    let _walk = api.walks.try_acquire().map_err(|_| busy())?;
    let config = config(api).await?;
    if let Some(wanted) = call.query.text("guard")
        && !config.guards.iter().any(|guard| guard.name == wanted)
    {
        return Err(AdminProblem::malformed(
            "query.guard",
            "there is no such guard",
        ));
    }
    let count = config.guards.iter().count();
    let mut found = GuardInConfig { config, at: 0 };
    let mut bans = Vec::new();
    for at in 0..count {
        found.at = at;
        read(api, call, &found, &mut bans).await?;
        if bans.len() > MEMBERS_MAX {
            let why = format!("there are more than {MEMBERS_MAX}: ask for those of one `guard`");
            return Err(AdminProblem::invalid("query.guard", why));
        }
    }
    Ok(AdminReply::ok(ListPage::of(
        &bans,
        &call.query,
        BanItem::clone,
    )))
}

/// Reads the clients that one guard bans.
async fn read(
    api: &Api,
    call: &AdminCall,
    found: &GuardInConfig,
    bans: &mut Vec<BanItem>,
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
            bans.push(BanItem {
                guard: guard.name.clone(),
                member: shown(hides, &member),
                ends_in_ms,
            });
        }
    }
    Ok(())
}
