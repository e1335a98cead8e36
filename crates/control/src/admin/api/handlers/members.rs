//! Lists, adds and removes the members of a guard's list.

use super::buckets::config;
use crate::admin::api::Api;
use crate::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::admin::api::bodies::NoContent;
use crate::admin::api::bodies::members::{MemberItem, NewMember};
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::problem::{AdminProblem, ProblemCollector};
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::request::PartialBody;
use crate::admin::api::routing::call::AdminCall;
use crate::admin::api::routing::path::{encode, is_sound};
use crate::admin::api::routing::route::BASE;
use crate::admin::health::body::millis;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::Config;
use tidegate::redis::{KeyRules, settings};
use tidegate_policy::guard::ListOrigin;
use tidegate_policy::store::{RedisSettings, StoreSettings, StoreTarget};
use tidegate_policy::text::duration;
use tidegate_policy::{Guard, KeyPart, redact};
use tidegate_redis_client::Connection;
use tidegate_redis_shared::{Bans, RedisSets};

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
pub(in super::super) async fn list(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<MemberItem>> {
    let found = GuardInConfig::of(api, call).await?;
    let guard = found.guard()?;
    let hides = hides(guard);
    let mut members: BTreeMap<String, Option<u64>> = match &guard.origin {
        ListOrigin::List(list) => list.iter().map(|it| (it.to_owned(), None)).collect(),
        ListOrigin::File(path) => return Err(elsewhere(guard, path)),
        ListOrigin::Redis { .. } => {
            let busy = || {
                AdminProblem::unavailable("too many calls of this kind are in progress: try again")
            };
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
            return Err(AdminProblem::malformed("query.name", why));
        }
        members.retain(|member, _| member.starts_with(prefix));
    }
    let members: Vec<(String, Option<u64>)> = members.into_iter().collect();
    let page = ListPage::of(&members, &call.query, |(member, ends)| MemberItem {
        member: shown(hides, member),
        new: None,
        ends_in_ms: *ends,
    });
    Ok(AdminReply::ok(page))
}

/// Adds a member; if members of the list can expire, until its expiry.
pub(in super::super) async fn add(
    api: &Api,
    call: &AdminCall,
    PartialBody { body, problem }: PartialBody<NewMember>,
) -> ReplyResult<MemberItem> {
    let found = GuardInConfig::of(api, call).await;
    // An invalid body is 422, for every path.
    let (found, problem) = match (found, problem) {
        (Err(_), Some(problem)) => return Err(problem),
        (found, problem) => (found?, problem),
    };
    let guard = found.guard()?;
    let (member, length) = wanted(&body, &found, problem)?;
    let set = found.set(api).await?;
    if length.is_some() && !set.has_ends {
        set.close().await;
        let why = "members of this list stay until they are removed; only those of the guard that \
                   `addresses.ban` names may have an end";
        return Err(AdminProblem::invalid("for", why));
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
            after: json!({ "member": shown(hides, &member), "for": body.length }),
        };
        match is_new {
            Ok(is_new) => Ok((is_new, Some(change))),
            Err(refusal) => Err(refusal.with_change(AuditOutcome::Unknown, change)),
        }
    };
    let is_new = api.change(call, adding).await?;
    let reply = AdminReply::ok(MemberItem {
        member: shown(hides, &member),
        new: Some(is_new),
        ends_in_ms: length.map(millis),
    });
    if !is_new {
        return Ok(reply);
    }
    let name = encode(if hides { redact::HIDDEN } else { &member });
    let place = format!("{BASE}/guards/{}/members/{name}", encode(&guard.name));
    Ok(reply.created(place))
}

/// Removes a member.
pub(in super::super) async fn remove(api: &Api, call: &AdminCall) -> ReplyResult<NoContent> {
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
            Ok(false) => Err(AdminProblem::not_found("member", &shown(hides, &member))),
            Err(refusal) => Err(refusal.with_change(AuditOutcome::Unknown, change)),
        }
    };
    api.change(call, removing).await?;
    Ok(AdminReply::no_content())
}

/// Returns the member to add, and its duration if the body has one, or all errors.
fn wanted(
    body: &NewMember,
    found: &GuardInConfig,
    problem: Option<AdminProblem>,
) -> Result<(String, Option<Duration>), AdminProblem> {
    let mut wrong = ProblemCollector::after(problem);
    let member = wrong.take(found.member(&body.member, "member"));
    let length = wrong.take(match body.length.as_deref() {
        None | Some("0") => Ok(None),
        Some(text) => match duration(text) {
            Ok(length) => Ok(Some(length)),
            Err(why) => Err(AdminProblem::invalid("for", why)),
        },
    });
    wrong.end()?;
    member.zip(length).ok_or_else(AdminProblem::internal)
}

impl GuardInConfig {
    async fn of(api: &Api, call: &AdminCall) -> Result<Self, AdminProblem> {
        let name = call.param("guard");
        let config = config(api).await?;
        let at = config.guards.iter().position(|guard| guard.name == name);
        let at = at.ok_or_else(|| AdminProblem::not_found("guard", name))?;
        Ok(Self { config, at })
    }

    pub(super) fn guard(&self) -> Result<&Guard, AdminProblem> {
        self.config
            .guards
            .iter()
            .nth(self.at)
            .ok_or_else(AdminProblem::internal)
    }

    /// Returns the normalized form of a member.
    fn member(&self, text: &str, place: &str) -> Result<String, AdminProblem> {
        if !is_sound(text) {
            let why = "it is missing, too long, or holds control characters";
            return Err(AdminProblem::invalid(place, why));
        }
        if self.guard()?.subject != KeyPart::Ip {
            return Ok(text.to_owned());
        }
        let member = self.config.client.address_rules().member_of(text);
        member.ok_or_else(|| AdminProblem::invalid(place, "it is neither an address nor a network"))
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
        let connection = match (at, api.decider.limiter().store().redis()) {
            (Some(redis), _) => reach(&self.config.store, redis).await?,
            (None, Some(store)) => store.connection().clone(),
            (None, None) => return Err(AdminProblem::unavailable("the store is not in Redis")),
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
        let members = self.sets().members(key, MEMBERS_MAX, READ_TIME).await;
        let members = members.map_err(unreachable)?;
        let name = |member: Vec<u8>| String::from_utf8_lossy(&member).into_owned();
        let mut read: BTreeMap<_, _> = members.into_iter().map(|it| (name(it), None)).collect();
        if self.has_ends {
            let ends = self.bans().ends(MEMBERS_MAX, READ_TIME).await;
            for (member, left) in ends.map_err(unreachable)? {
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
            return Ok(!new.map_err(unreachable)?.is_empty());
        }
        let added = self
            .sets()
            .add_members(self.key.as_bytes(), &[member])
            .await;
        Ok(added.map_err(unreachable)? > 0)
    }

    /// Removes a member. Returns true if it existed.
    async fn remove(&self, member: &str) -> Result<bool, AdminProblem> {
        if self.has_ends {
            return self.bans().unban(member).await.map_err(unreachable);
        }
        let removed = self
            .sets()
            .remove_members(self.key.as_bytes(), &[member])
            .await;
        Ok(removed.map_err(unreachable)? > 0)
    }

    fn sets(&self) -> RedisSets {
        RedisSets::new(self.connection.clone())
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
    let (settings, _) = settings(&store, &[], &KeyRules::default()).map_err(unreachable)?;
    let settings = settings.client_name("tidegate-admin");
    let connection = Connection::start(settings, Vec::new()).map_err(unreachable)?;
    let reached = tokio::time::timeout(REACH_TIME, connection.connected()).await;
    if reached.is_err() {
        connection.close().await;
        return Err(AdminProblem::unavailable(
            "the Redis that has the list does not answer",
        ));
    }
    Ok(connection)
}

fn unreachable(error: impl std::fmt::Display) -> AdminProblem {
    AdminProblem::unavailable(error.to_string())
}

fn elsewhere(guard: &Guard, place: &str) -> AdminProblem {
    let name = tidegate_frontends::wire::fault::quote(&guard.name);
    let detail = format!("the members of guard {name} come from {place}, not from Redis");
    AdminProblem::conflict(detail)
}

/// Returns true if the members are secrets.
pub(super) fn hides(guard: &Guard) -> bool {
    match &guard.subject {
        KeyPart::ApiKey => true,
        KeyPart::Header(name) | KeyPart::Attr(name) | KeyPart::DescriptorEntry { name, .. } => {
            redact::is_secret_subject(name)
        }
        _ => false,
    }
}

pub(super) fn shown(hides: bool, member: &str) -> String {
    if hides { redact::HIDDEN } else { member }.to_owned()
}
