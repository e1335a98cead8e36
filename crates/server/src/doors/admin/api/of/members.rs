//! Lists, adds and removes the members of a guard's list.

use super::buckets::config;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::page;
use crate::doors::admin::api::path::{encode, is_sound};
use crate::doors::admin::api::respond::{AdminProblem, Done, ProblemCollector};
use crate::doors::admin::api::route::BASE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::redis::{KeyRules, settings};
use tidegate::{AnyStore, Config};
use tidegate_policy::config::{RedisSettings, StoreSettings, StoreTarget, duration};
use tidegate_policy::guard::ListOrigin;
use tidegate_policy::{Guard, KeyPart, mask};
use tidegate_redis::{Bans, Connection};

/// The maximum number of members of a set that can be listed.
pub(super) const MEMBERS_MAX: usize = 1_000_000;

/// The timeout for reading a set.
const READ_TIME: Duration = Duration::from_secs(10);

/// The timeout for connecting to a Redis other than the store's.
const REACH_TIME: Duration = Duration::from_secs(5);

/// A guard, and its configuration.
pub(super) struct GuardInConfig {
    pub(super) config: Config,
    pub(super) at: usize,
}

/// A set in Redis. `has_ends` is true if its members may expire.
pub(super) struct MemberSet {
    connection: Connection,
    key: String,
    has_ends: bool,
    /// The connection is for this call alone.
    is_own: bool,
}

/// Lists the members.
pub(in super::super) async fn list(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let found = GuardInConfig::of(api, call).await?;
    let guard = found.guard()?;
    let hides = hides(guard);
    let mut members: BTreeMap<String, Option<u64>> = match &guard.origin {
        ListOrigin::List(list) => list.iter().map(|it| (it.to_owned(), None)).collect(),
        ListOrigin::File(path) => return Err(elsewhere(guard, path)),
        ListOrigin::Redis { .. } => {
            let busy = || AdminProblem::away("others are at it: try again");
            let _walk = api.walks.try_acquire().map_err(|_| busy())?;
            let set = found.set(api).await?;
            let read = set.read().await;
            set.close().await;
            read?
        }
    };
    if let Some(prefix) = call.query.text("name") {
        if hides {
            let why = "these are secrets, and not shown: none can be looked for";
            return Err(AdminProblem::bad("query.name", why));
        }
        members.retain(|member, _| member.starts_with(prefix));
    }
    let members: Vec<(String, Option<u64>)> = members.into_iter().collect();
    let body = page::of(
        &members,
        &call.query,
        |(member, ends)| json!({ "member": shown(hides, member), "ends_in_ms": ends }),
    );
    Ok(Done::seen(body))
}

/// Adds a member; if members of the list can expire, until its expiry.
pub(in super::super) async fn add(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let found = GuardInConfig::of(api, call).await?;
    let guard = found.guard()?;
    let (member, length) = said(call, &found)?;
    let set = found.set(api).await?;
    if length.is_some() && !set.has_ends {
        set.close().await;
        let why = "members of this list stay until they are removed; only those of the guard that \
                   `addresses.ban` names may have an end";
        return Err(AdminProblem::senseless("for", why));
    }
    let hides = hides(guard);
    let adding = async {
        let is_new = set.add(&member, length).await;
        set.close().await;
        let change = AuditedChange {
            target: format!("guard/{}/member", guard.name),
            before: match is_new {
                Ok(false) => json!({ "member": shown(hides, &member) }),
                _ => Value::Null,
            },
            after: json!({ "member": shown(hides, &member), "for": call.body.get("for") }),
        };
        match is_new {
            Ok(is_new) => Ok((is_new, Some(change))),
            Err(refusal) => Err(refusal.told(AuditOutcome::Unknown, change)),
        }
    };
    let is_new = api.change(call, adding).await?;
    let body = json!({
        "member": shown(hides, &member),
        "new": is_new,
        "ends_in_ms": length.map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
    });
    if !is_new {
        return Ok(Done::seen(body));
    }
    let name = encode(if hides { mask::HIDDEN } else { &member });
    let place = format!("{BASE}/guards/{}/members/{name}", encode(&guard.name));
    Ok(Done::created(body, place))
}

/// Removes a member.
pub(in super::super) async fn remove(api: &Api, call: &AdminCall) -> Result<Done, AdminProblem> {
    let found = GuardInConfig::of(api, call).await?;
    let guard = found.guard()?;
    let member = found.member(call.param("member"), "path.member")?;
    let set = found.set(api).await?;
    let hides = hides(guard);
    let removing = async {
        let was_there = set.remove(&member).await;
        set.close().await;
        let change = AuditedChange {
            target: format!("guard/{}/member", guard.name),
            before: json!({ "member": shown(hides, &member) }),
            after: Value::Null,
        };
        match was_there {
            Ok(true) => Ok(((), Some(change))),
            Ok(false) => Err(AdminProblem::unknown("member", &shown(hides, &member))),
            Err(refusal) => Err(refusal.told(AuditOutcome::Unknown, change)),
        }
    };
    api.change(call, removing).await?;
    Ok(Done::gone())
}

/// Returns the member to add, and its duration if the body has one, or all errors.
fn said(
    call: &AdminCall,
    found: &GuardInConfig,
) -> Result<(String, Option<Duration>), AdminProblem> {
    let mut wrong = ProblemCollector::default();
    wrong.take(call.only(&["member", "for"]));
    let member = call.text("member");
    let member = member.and_then(|it| found.member(it.unwrap_or_default(), "member"));
    let member = wrong.take(member);
    let length = call.text("for").and_then(|text| match text {
        None | Some("0") => Ok(None),
        Some(text) => match duration(text) {
            Ok(length) => Ok(Some(length)),
            Err(why) => Err(AdminProblem::senseless("for", why)),
        },
    });
    let length = wrong.take(length);
    wrong.end()?;
    member.zip(length).ok_or_else(AdminProblem::failed)
}

impl GuardInConfig {
    async fn of(api: &Api, call: &AdminCall) -> Result<Self, AdminProblem> {
        let name = call.param("guard");
        let config = config(api).await?;
        let at = config.guards.iter().position(|guard| guard.name == name);
        let at = at.ok_or_else(|| AdminProblem::unknown("guard", name))?;
        Ok(Self { config, at })
    }

    pub(super) fn guard(&self) -> Result<&Guard, AdminProblem> {
        self.config
            .guards
            .iter()
            .nth(self.at)
            .ok_or_else(AdminProblem::failed)
    }

    /// Returns the normalized form of a member.
    fn member(&self, text: &str, place: &str) -> Result<String, AdminProblem> {
        if !is_sound(text) {
            let why = "it is missing, too long, or holds control characters";
            return Err(AdminProblem::senseless(place, why));
        }
        if self.guard()?.subject != KeyPart::Ip {
            return Ok(text.to_owned());
        }
        let member = self.config.client.address_rules().member_of(text);
        member
            .ok_or_else(|| AdminProblem::senseless(place, "it is neither an address nor a network"))
    }

    /// Connects to the set that the guard reads.
    pub(super) async fn set(&self, api: &Api) -> Result<MemberSet, AdminProblem> {
        let guard = self.guard()?;
        let (key, at) = match &guard.origin {
            ListOrigin::Redis { set, at } => (set.clone(), at.as_deref()),
            ListOrigin::File(path) => return Err(elsewhere(guard, path)),
            ListOrigin::List(_) => {
                return Err(elsewhere(guard, "the configuration, as its `list`"));
            }
        };
        let ban = self
            .config
            .addresses
            .as_ref()
            .and_then(|it| it.ban.as_ref());
        let connection = match (at, api.decider.limiter().store()) {
            (Some(redis), _) => reach(&self.config.store, redis).await?,
            (None, AnyStore::Redis(store)) => store.connection().clone(),
            (None, _) => return Err(AdminProblem::away("the store is not in Redis")),
        };
        Ok(MemberSet {
            connection,
            key,
            has_ends: ban.is_some_and(|ban| ban.guard == guard.name),
            is_own: at.is_some(),
        })
    }
}

impl MemberSet {
    pub(super) async fn read(&self) -> Result<BTreeMap<String, Option<u64>>, AdminProblem> {
        let key = self.key.as_bytes();
        let members = self.connection.members(key, MEMBERS_MAX, READ_TIME).await;
        let members = members.map_err(away)?;
        let name = |member: Vec<u8>| String::from_utf8_lossy(&member).into_owned();
        let mut read: BTreeMap<_, _> = members.into_iter().map(|it| (name(it), None)).collect();
        if self.has_ends {
            let ends = self.bans().ends(MEMBERS_MAX, READ_TIME).await;
            for (member, left) in ends.map_err(away)? {
                if let Some(end) = read.get_mut(&name(member)) {
                    *end = u64::try_from(left.as_millis()).ok();
                }
            }
        }
        Ok(read)
    }

    /// Adds a member. Returns true if it is new.
    async fn add(&self, member: &str, length: Option<Duration>) -> Result<bool, AdminProblem> {
        if self.has_ends {
            let new = self.bans().ban(&[member], length).await;
            return Ok(!new.map_err(away)?.is_empty());
        }
        let added = self
            .connection
            .add_members(self.key.as_bytes(), &[member])
            .await;
        Ok(added.map_err(away)? > 0)
    }

    /// Removes a member. Returns true if it existed.
    async fn remove(&self, member: &str) -> Result<bool, AdminProblem> {
        if self.has_ends {
            return self.bans().unban(member).await.map_err(away);
        }
        let removed = self
            .connection
            .remove_members(self.key.as_bytes(), &[member])
            .await;
        Ok(removed.map_err(away)? > 0)
    }

    fn bans(&self) -> Bans {
        Bans::new(self.connection.clone(), self.key.clone())
    }

    pub(super) async fn close(&self) {
        if self.is_own {
            self.connection.close().await;
        }
    }
}

/// Connects to a Redis other than the store's.
async fn reach(store: &StoreSettings, redis: &RedisSettings) -> Result<Connection, AdminProblem> {
    let store = StoreSettings {
        target: StoreTarget::Redis(Box::new(redis.clone())),
        ..store.clone()
    };
    let (settings, _) = settings(&store, &[], &KeyRules::default()).map_err(away)?;
    let settings = settings.client_name("tidegate-admin");
    let connection = Connection::start(settings, Vec::new()).map_err(away)?;
    let reached = tokio::time::timeout(REACH_TIME, connection.connected()).await;
    if reached.is_err() {
        connection.close().await;
        return Err(AdminProblem::away(
            "the Redis that has the list does not answer",
        ));
    }
    Ok(connection)
}

fn away(error: impl std::fmt::Display) -> AdminProblem {
    AdminProblem::away(error.to_string())
}

fn elsewhere(guard: &Guard, place: &str) -> AdminProblem {
    let name = crate::wire::fault::quote(&guard.name);
    let detail = format!("who is on the list of guard {name} stands in {place}, not in Redis");
    AdminProblem::new(409, detail)
}

/// Returns true if the members are secrets.
pub(super) fn hides(guard: &Guard) -> bool {
    match &guard.subject {
        KeyPart::ApiKey => true,
        KeyPart::Header(name) | KeyPart::Attr(name) | KeyPart::DescriptorEntry { name, .. } => {
            mask::is_secret_subject(name)
        }
        _ => false,
    }
}

pub(super) fn shown(hides: bool, member: &str) -> String {
    if hides { mask::HIDDEN } else { member }.to_owned()
}
