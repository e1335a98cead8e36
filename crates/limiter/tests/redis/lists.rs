//! Lists of guards in sets of a real Redis.

use crate::runtime;
use std::time::Duration;
use tidegate::{AnswerReason, AnyStore, Config, Limiter, ListStatus, Request};
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, until};
use tokio::task::JoinHandle;

const LIMITS: &str = "policies: [{ name: events, limits: [{ name: all, rate: 1000/s }] }]";

const GUARDS: &str = "
guards:
  - { name: projects, deny: 'attr:project', redis: { set: DisabledProjectsSet }, refresh: 100ms }
  - { name: blacklist, deny: ip, redis: { set: BlacklistIPsSet }, refresh: 100ms, timeout: 500ms }
";

/// A limiter whose lists are refreshed, until it is dropped.
struct RefreshedLimiter {
    limiter: Limiter<AnyStore>,
    keeping: JoinHandle<()>,
}

impl RefreshedLimiter {
    fn start(config: &str) -> Self {
        let builder = Limiter::builder().yaml(config).expect("a valid config");
        let limiter = runtime().block_on(builder.start()).expect("it starts");
        let keeping = runtime().spawn(limiter.keep_lists());
        Self { limiter, keeping }
    }

    /// Starts one with buckets in the Redis at `url`.
    fn at(url: &str) -> Self {
        Self::start(&format!("store: {{ url: '{url}' }}\n{GUARDS}{LIMITS}"))
    }

    /// `IsBlocked(project)`.
    fn is_blocked(&self, project: &str) -> bool {
        let attributes = [("project", project)];
        let asked = Request::new().attributes(&attributes);
        self.limiter
            .check_guards(&asked)
            .expect("it is open")
            .reason()
            == AnswerReason::Blocked
    }

    /// `CheckBlacklist(ip)`.
    fn is_listed(&self, ip: &str) -> bool {
        let asked = Request::new().ip(ip.parse().expect("an address"));
        self.limiter
            .check_guards(&asked)
            .expect("it is open")
            .reason()
            == AnswerReason::Blacklisted
    }

    fn status(&self, guard: &str) -> ListStatus {
        let mut lists = self.limiter.lists().into_iter();
        lists
            .find(|list| list.guard == guard)
            .expect("there is one")
    }
}

impl Drop for RefreshedLimiter {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

#[test]
fn list_changes_take_effect_within_one_refresh() {
    let server = Server::start();
    server.command(&["SADD", "DisabledProjectsSet", "6762b5db032b200023854b2c"]);
    let kept = RefreshedLimiter::at(&server.url());
    // Read before the first request.
    assert!(kept.is_blocked("6762b5db032b200023854b2c"));
    assert!(!kept.is_blocked("6762b5db032b200023854b2d"));
    server.command(&["SADD", "DisabledProjectsSet", "6762b5db032b200023854b2d"]);
    server.command(&["SADD", "BlacklistIPsSet", "192.168.1.100"]);
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    until("the second project is blocked", || {
        kept.is_blocked("6762b5db032b200023854b2d")
    });
    until("both addresses are listed", || {
        kept.is_listed("192.168.1.100") && kept.is_listed("10.0.0.50")
    });
    assert!(!kept.is_listed("10.0.0.51"));
    let refused = Request::new().ip("10.0.0.50".parse().unwrap());
    let decision = runtime().block_on(kept.limiter.check(&refused)).unwrap();
    assert_eq!(decision.reason(), AnswerReason::Blacklisted);

    server.command(&["SREM", "BlacklistIPsSet", "10.0.0.50"]);
    until("it passes", || !kept.is_listed("10.0.0.50"));
    assert!(kept.is_listed("192.168.1.100"));
    server.command(&["DEL", "BlacklistIPsSet"]);
    until("nobody is listed", || kept.status("blacklist").members == 0);
}

#[test]
fn a_large_set_is_read_completely_and_invalid_members_counted() {
    let server = Server::start();
    let mut client = server.client();
    for part in 0..30_u32 {
        let mut words = vec!["SADD".to_owned(), "BlacklistIPsSet".to_owned()];
        words.extend((0..1_000_u32).map(|n| format!("10.{part}.{}.{}", n / 250, n % 250)));
        client.command(&words);
    }
    server.command(&["SADD", "BlacklistIPsSet", "not-an-address", "2001:db8::/32"]);
    let kept = RefreshedLimiter::at(&server.url());
    let status = kept.status("blacklist");
    assert_eq!((status.members, status.skipped), (30_001, 1));
    assert!(kept.is_listed("10.29.3.249") && kept.is_listed("2001:db8:7::1"));
    assert!(!kept.is_listed("10.30.0.0"));
}

#[test]
fn a_dead_redis_keeps_its_last_lists_and_delays_no_request() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let kept = RefreshedLimiter::at(&server.url());
    assert!(kept.is_listed("10.0.0.50"));
    server.kill9();
    until("it is noticed", || kept.status("blacklist").failures >= 2);
    for _ in 0..1_000 {
        assert!(kept.is_listed("10.0.0.50") && !kept.is_listed("10.0.0.51"));
    }
    let status = kept.status("blacklist");
    assert!(
        status.error.is_some() && status.failing_for.is_some(),
        "{status:?}"
    );
    assert!(status.age > Some(Duration::ZERO) && status.members == 1);

    server.restart();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.51"]);
    until("it is read again", || kept.is_listed("10.0.0.51"));
    assert!(!kept.is_listed("10.0.0.50"), "it forgot");
    assert!(kept.status("blacklist").error.is_none());
}

#[test]
fn an_unresponsive_redis_is_abandoned_after_the_guard_timeout() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let kept = RefreshedLimiter::at(&server.url());
    server.stop();
    until("it is noticed", || kept.status("blacklist").failures >= 1);
    assert!(kept.is_listed("10.0.0.50"));
    server.cont();
    until("it is read again", || {
        kept.status("blacklist").error.is_none()
    });
    assert!(kept.is_listed("10.0.0.50"));
}

#[test]
fn without_redis_it_starts_with_an_empty_list_and_reads_it_later() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let wire = FaultProxy::start(server.port());
    wire.set(ProxyFaults::refuse());
    let kept = RefreshedLimiter::at(&server.url_at(wire.port()));
    assert!(!kept.is_listed("10.0.0.50"));
    let status = kept.status("blacklist");
    assert!(status.age.is_none() && status.error.is_some(), "{status:?}");
    wire.set(ProxyFaults::none());
    until("it is read", || kept.is_listed("10.0.0.50"));
}

#[test]
fn a_key_of_another_type_is_an_error_and_keeps_the_last_list() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let kept = RefreshedLimiter::at(&server.url());
    server.command(&["SET", "BlacklistIPsSet", "text"]);
    until("it is noticed", || kept.status("blacklist").error.is_some());
    let error = kept.status("blacklist").error.expect("it failed");
    assert!(error.contains("BlacklistIPsSet"), "{error}");
    assert!(kept.is_listed("10.0.0.50"));
}

#[test]
fn a_list_may_be_in_another_redis_than_buckets_or_next_to_memory() {
    let (store, lists) = (Server::start(), Server::start());
    lists.command(&["SADD", "keys", "k1"]);
    store.command(&["SADD", "keys", "k2"]);
    for at in [
        format!("store: {{ url: '{}' }}", store.url()),
        String::new(),
    ] {
        let guard = format!(
            "{{ name: keys, deny: api-key, redis: {{ set: keys, url: '{}' }} }}",
            lists.url()
        );
        let kept = RefreshedLimiter::start(&format!("{at}\nguards: [{guard}]\n{LIMITS}"));
        let asked = |key| kept.limiter.check_guards(&Request::new().api_key(key));
        assert_eq!(asked("k1").unwrap().reason(), AnswerReason::Blocked, "{at}");
        assert!(asked("k2").unwrap().is_allowed(), "{at}");
    }
}

/// Returns a configuration with one guard on a set, under this name.
fn named(url: &str, guard: &str, refresh: &str) -> String {
    format!(
        "store: {{ url: '{url}' }}\nguards: [{{ name: {guard}, deny: ip, refresh: {refresh}, timeout: 10s, {} }}]\n{LIMITS}",
        "redis: { set: BlacklistIPsSet }"
    )
}

#[test]
fn a_guard_with_another_name_began_with_an_empty_list() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let kept = RefreshedLimiter::start(&named(&server.url(), "one", "1h"));
    assert!(kept.is_listed("10.0.0.50"));
    // The set is unreadable from now on.
    server.kill9();
    let config = Config::from_yaml(&named(&server.url(), "two", "30min")).unwrap();
    kept.limiter.reload(config).unwrap();
    assert!(kept.is_listed("10.0.0.50"));
    let status = kept.status("two");
    assert!(status.members == 1 && status.age.is_some(), "{status:?}");
}

#[test]
fn unread_lists_are_read_before_a_start_and_a_reload() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    server.command(&["SADD", "OtherSet", "10.0.0.60"]);
    let kept = RefreshedLimiter::start(&named(&server.url(), "one", "1h"));
    // No task refreshes the lists, so only `preload_lists` reads them.
    kept.keeping.abort();
    let other = named(&server.url(), "one", "1h").replace("BlacklistIPsSet", "OtherSet");
    let config = Config::from_yaml(&other).unwrap();
    runtime().block_on(kept.limiter.preload_lists(&config));
    assert!(kept.is_listed("10.0.0.50"), "nothing has changed yet");
    assert!(!kept.is_listed("10.0.0.60"));
    kept.limiter.reload(config).unwrap();
    assert!(kept.is_listed("10.0.0.60"));
    assert!(!kept.is_listed("10.0.0.50"));
}

#[test]
fn a_list_of_a_disabled_guard_is_kept_and_read_before_reenabling() {
    let server = Server::start();
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.50"]);
    let on = named(&server.url(), "one", "100ms");
    let off = on.replace("deny: ip", "deny: ip, mode: off");
    let kept = RefreshedLimiter::start(&on);
    // No task refreshes the list, so only `preload_lists` reads it.
    kept.keeping.abort();
    let reload = |text: &str| {
        let config = Config::from_yaml(text).expect("a valid config");
        runtime().block_on(kept.limiter.preload_lists(&config));
        kept.limiter.reload(config).expect("it is served");
    };
    reload(&off);
    assert!(!kept.is_listed("10.0.0.50"));
    let status = kept.status("one");
    assert!(!status.enabled && status.members == 1, "{status:?}");
    server.command(&["SADD", "BlacklistIPsSet", "10.0.0.60"]);
    until("it is time to read it", || {
        kept.status("one").age > Some(Duration::from_millis(100))
    });
    reload(&on);
    assert!(kept.is_listed("10.0.0.50") && kept.is_listed("10.0.0.60"));

    // A list that cannot be read any more keeps the entries read last.
    reload(&off);
    server.kill9();
    until("it is time to read it", || {
        kept.status("one").age > Some(Duration::from_millis(100))
    });
    assert_eq!(kept.status("one").failures, 0, "no request uses it");
    reload(&on);
    assert!(kept.is_listed("10.0.0.60"));
    assert_eq!(kept.status("one").failures, 1);
    reload(&off);
    assert_eq!(kept.status("one").failures, 1, "it is counted by name");
}

/// Regression: the server does not answer, and every reload waited for it once more.
#[test]
fn every_reload_waited_for_a_list_that_was_never_readable() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("it listens");
    let port = silent.local_addr().expect("it has a port").port();
    let guard = format!(
        "guards: [{{ name: away, deny: ip, redis: {{ set: s, url: 'redis://127.0.0.1:{port}' }}, timeout: 100ms }}]"
    );
    let config = format!("{guard}\n{LIMITS}");
    let builder = Limiter::builder().yaml(&config).expect("a valid config");
    let limiter = runtime().block_on(builder.start()).expect("it starts");
    let failures = || limiter.lists()[0].failures;
    assert_eq!(failures(), 1, "it was tried at the start");
    let config = Config::from_yaml(&config).expect("a valid config");
    runtime().block_on(limiter.preload_lists(&config));
    assert_eq!(failures(), 1, "it was waited for again");
    drop(silent);
}
