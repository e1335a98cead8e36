//! Writes the configuration.

use super::middleware::{TraefikRateLimit, TraefikRedis, TraefikSource};
use super::router::{self, LimitedRouter, RouterLimit};
use super::settings::TraefikItems;
use crate::SourceFile;
use crate::base::SectionWriter;
use crate::document::line;
use crate::draft::{
    AlgorithmDraft, ConditionDraft, KeyDraft, LimitDraft, PolicyDraft, RateDraft, RequestScope,
    WaitDraft,
};
use crate::names::{self, NameRequest};
use crate::note::ImportNotes;
use crate::scopes::{self, RuleScope, ScopedLimit};
use crate::text::{escaped, quote};
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::{ConfigFault, TextSpan};

/// The variable with the password of Redis.
pub(super) const PASSWORD: &str = "TRAEFIK_REDIS_PASSWORD";

/// Returns the sections before the policies, and the policy, or an error if there are too many routers.
pub(super) fn all(
    items: &TraefikItems,
    limits: &[TraefikRateLimit],
    file: &SourceFile,
    notes: &mut ImportNotes,
) -> Result<(String, PolicyDraft), ConfigFault> {
    let base = base(limits, file, notes);
    for it in limits {
        note_limit(it, file, notes);
    }
    let mut routers = Vec::new();
    let mut all: Vec<RouterLimit<'_>> = Vec::new();
    for item in &items.routers {
        router::read(item, items, limits, (&mut routers, &mut all), (file, notes));
    }
    let used: BTreeSet<&str> = all.iter().map(|it| it.middleware.name.as_str()).collect();
    for middleware in limits
        .iter()
        .filter(|it| it.rate.is_some() && !used.contains(it.name.as_str()))
    {
        // With routers in the file, no request reaches it.
        let is_applied = items.routers.is_empty();
        let name = ConfigFault::quote(&middleware.name);
        let text = if is_applied {
            format!("no router in this file uses middleware {name}: it applies to every request")
        } else {
            format!("no router in this file uses middleware {name}: it is off in the translation")
        };
        notes.add((&file.name, line(middleware.place)), text);
        all.push(RouterLimit {
            middleware,
            router: None,
            is_expressible: is_applied,
        });
    }
    let mut drafts = drafts(&routers, &all, file)?;
    if drafts.is_empty() {
        notes.warn(
            (&file.name, 1),
            "no RateLimit middleware found: every request passes",
        );
        drafts.push(LimitDraft::for_no_request());
    }
    let policy = PolicyDraft {
        name: "traefik".to_owned(),
        domain: "traefik".to_owned(),
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits: drafts,
    };
    Ok((base, policy))
}

/// Notes what differs for a middleware.
fn note_limit(it: &TraefikRateLimit, file: &SourceFile, notes: &mut ImportNotes) {
    let name = ConfigFault::quote(&it.name);
    let at = |place: TextSpan| (file.name.as_str(), line(place));
    if it.rate.is_none() {
        notes.add(
            at(it.place),
            format!("middleware {name} does not limit: its `average` is 0"),
        );
    }
    if let Some((depth, place)) = it.depth {
        notes.warn(at(place), format!("`depth: {depth}` is not translated: Tidegate finds the client behind trusted proxies. List your proxies in `client.trusted_proxies`"));
    }
    if let TraefikSource::Header(header) = &it.source {
        notes.warn(at(it.place), format!("requests without the header `{header}` count by client address: Traefik counts them together"));
    }
}

/// Returns the limits of the policy.
fn drafts(
    routers: &[LimitedRouter<'_>],
    all: &[RouterLimit<'_>],
    file: &SourceFile,
) -> Result<Vec<LimitDraft>, ConfigFault> {
    let rules: Vec<RuleScope> = routers.iter().map(|it| it.scope.clone()).collect();
    let beats = |a: usize, b: usize| {
        let both = routers.get(a).zip(routers.get(b));
        both.is_some_and(|(one, other)| one.beats(a, other, b))
    };
    let solved = scopes::solve(&rules, beats, |_| true)?;
    let scoped = |of: usize| solved.limits.iter().find(|it| it.of == of);
    let mut wanted: Vec<NameRequest> = all.iter().map(|it| request(it, all)).collect();
    let free = solved.exempt.iter().filter_map(|it| routers.get(it.scope));
    wanted.extend(free.map(|it| {
        let text = format!("unlimited.{}", it.item.name);
        NameRequest::made_up(text.clone(), text)
    }));
    let names = names::all(&wanted, &["none"]);
    let called = |at: &usize| {
        let of = solved.limits.get(*at).map(|it| it.of);
        of.and_then(|of| names.get(of)).cloned().unwrap_or_default()
    };
    let replaced = |all: &BTreeSet<usize>| all.iter().map(called).collect::<Vec<_>>();
    let mut limits = Vec::new();
    for ((at, it), name) in all.iter().enumerate().zip(&names) {
        let mut draft = draft(name.clone(), it, file);
        if let Some(ScopedLimit {
            scopes, replaces, ..
        }) = scoped(at)
        {
            let conditions = scopes.iter().filter_map(|it| rules.get(*it));
            let conditions: Vec<_> = conditions.flat_map(|it| it.conditions.clone()).collect();
            draft.whom = request_scope(conditions);
            draft.replaces = replaced(replaces);
        }
        limits.push(draft);
    }
    for (exempt, name) in solved.exempt.iter().zip(names.iter().skip(all.len())) {
        let Some(router) = routers.get(exempt.scope) else {
            continue;
        };
        limits.push(LimitDraft {
            replaces: replaced(&exempt.replaces),
            ..exemption(name.clone(), router, file)
        });
    }
    Ok(limits)
}

/// Returns a limit without a rate, for a router that the limits of others must not reach.
fn exemption(name: String, router: &LimitedRouter<'_>, file: &SourceFile) -> LimitDraft {
    let what = if router.uses.is_empty() {
        "has no limits"
    } else {
        "has other limits"
    };
    LimitDraft {
        comment: Some(format!(
            "{}:{}: router {} {what}.",
            file.name,
            line(router.item.place),
            router.item.name
        )),
        whom: request_scope(router.scope.conditions.clone()),
        ..LimitDraft::new(name, AlgorithmDraft::Tokens)
    }
}

/// Returns the requests of these conditions: all if there are none.
fn request_scope(conditions: Vec<ConditionDraft>) -> RequestScope {
    if conditions.is_empty() {
        RequestScope::Everybody
    } else {
        RequestScope::Any(conditions)
    }
}

/// Requests a name: that of the middleware, with the router if several use it.
fn request(it: &RouterLimit<'_>, all: &[RouterLimit<'_>]) -> NameRequest {
    let name = &it.middleware.name;
    let is_only = all
        .iter()
        .filter(|other| other.middleware.name == *name)
        .count()
        == 1;
    match it.router {
        Some(router) if !is_only => {
            let text = format!("{}.{name}", router.name);
            NameRequest::made_up(text.clone(), text)
        }
        _ => NameRequest::made_up(name.clone(), name.clone()),
    }
}

fn draft(name: String, it: &RouterLimit<'_>, file: &SourceFile) -> LimitDraft {
    let limit = it.middleware;
    let (amount, period) = limit.rate.unwrap_or((1, Duration::from_secs(1)));
    let burst = if limit.burst == amount {
        String::new()
    } else {
        format!(" burst {}", limit.burst)
    };
    let router = it
        .router
        .map_or(String::new(), |router| format!(", router {}", router.name));
    let key = match &limit.source {
        TraefikSource::Address => KeyDraft::part("ip"),
        TraefikSource::Header(name) => KeyDraft::part(format!("header:{name}")),
        TraefikSource::Host => KeyDraft::part("host"),
    };
    LimitDraft {
        comment: Some(format!(
            "{}:{}: middleware {}{router}",
            file.name,
            line(limit.place),
            limit.name
        )),
        key,
        enabled: it.is_expressible,
        rates: vec![RateDraft {
            text: format!("{amount}/{}{burst}", unit(period)),
            label: None,
        }],
        waiting: waiting(amount, period).filter(|_| it.is_expressible),
        ..LimitDraft::new(name, AlgorithmDraft::Tokens)
    }
}

/// Returns a period in the syntax of the configuration.
fn unit(period: Duration) -> String {
    match period.as_millis() {
        1_000 => "s".to_owned(),
        60_000 => "min".to_owned(),
        3_600_000 => "h".to_owned(),
        86_400_000 => "day".to_owned(),
        millis if millis % 1_000 == 0 => format!("{}s", millis / 1_000),
        millis => format!("{millis}ms"),
    }
}

/// Returns the wait that Traefik allows: half the time in which a token refills, at most half a second;
/// `None` if it is below a millisecond.
fn waiting(amount: u64, period: Duration) -> Option<WaitDraft> {
    let per_second = u128::from(amount) * 1_000_000_000 / period.as_nanos().max(1);
    let max_wait = 500_u128.checked_div(per_second).unwrap_or(500);
    let max_wait = u64::try_from(max_wait).ok()?;
    (max_wait > 0).then_some(WaitDraft {
        max_wait,
        max_waiting: 1_000,
    })
}

/// Returns the sections before the policies.
fn base(limits: &[TraefikRateLimit], file: &SourceFile, notes: &mut ImportNotes) -> String {
    let mut base = SectionWriter::default();
    base.section("listen").field("http", "127.0.0.1:8080");
    let mut redis = limits
        .iter()
        .filter_map(|it| Some((it, it.redis.as_ref()?)));
    if let Some((first, found)) = redis.next() {
        store(&mut base, found);
        let at = (file.name.as_str(), line(first.place));
        if found.has_password {
            notes.add(
                at,
                format!("the password of Redis is not copied: set the variable {PASSWORD}"),
            );
        }
        if found.has_tls {
            notes.add(at, "files of `redis.tls` are not copied: set them in `store.redis.tls` if you need them");
        }
        notes.add(at, "keys in Redis are Tidegate's own: buckets start full");
        if let Some((other, _)) = redis.find(|(_, other)| *other != found) {
            let text = "another Redis than that of the first middleware is skipped: a configuration has one store";
            notes.warn((&file.name, line(other.place)), text);
        }
        if let Some(other) = limits.iter().find(|it| it.redis.is_none()) {
            let text =
                "a middleware without `redis` counts in Redis too: a configuration has one store";
            notes.add((&file.name, line(other.place)), text);
        }
    }
    if limits.iter().any(|it| it.source == TraefikSource::Address) {
        let subnets = limits.iter().filter_map(|it| it.ipv6_subnet);
        let subnet = subnets.min().unwrap_or(128);
        base.section("client").field("ipv6_prefix", subnet);
        if let Some(other) = limits
            .iter()
            .find(|it| it.ipv6_subnet.unwrap_or(128) != subnet)
        {
            let text = format!(
                "`ipv6_prefix` applies to all limits: it is {subnet} for this middleware too"
            );
            notes.warn((&file.name, line(other.place)), text);
        }
        let excluded: BTreeSet<&String> = limits.iter().flat_map(|it| &it.excluded).collect();
        if !excluded.is_empty() {
            let own = ["127.0.0.0/8", "::1"].into_iter();
            let own = own.filter(|it| !excluded.iter().any(|other| other == it));
            let others = excluded.iter().map(|it| it.as_str());
            let all: Vec<String> = own.chain(others).map(|it| quote(&escaped(it))).collect();
            base.field("trusted_proxies", format!("[{}]", all.join(", ")));
        }
    }
    base.finish()
}

fn store(base: &mut SectionWriter, redis: &TraefikRedis) {
    let scheme = if redis.has_tls { "rediss" } else { "redis" };
    let database = match redis.database {
        0 => String::new(),
        // Several endpoints are a Cluster, which has no databases.
        _ if redis.endpoints.len() > 1 => String::new(),
        number => format!("/{number}"),
    };
    let urls = redis.endpoints.iter();
    let urls: Vec<String> = urls
        .map(|it| quote(&escaped(&format!("{scheme}://{it}{database}"))))
        .collect();
    base.section("store");
    match urls.as_slice() {
        [url] => base.field("url", url),
        urls => base.field("url", format!("[{}]", urls.join(", "))),
    };
    base.field(
        "on_failure",
        if redis.allows_on_error {
            "allow"
        } else {
            "deny"
        },
    );
    if redis.user.is_some() || redis.has_password {
        base.deeper("redis");
        if let Some(user) = &redis.user {
            base.named("user", user);
        }
        if redis.has_password {
            base.text("password", &format!("${{{PASSWORD}}}"));
        }
    }
}
