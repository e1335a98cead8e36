//! Guards: evaluated before any limit, with lists that change without a reload.

use crate::surroundings::Folder;
use futures_util::FutureExt;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tidegate::{
    AnswerReason, Config, Limiter, ManualClock, ProcessEnvironment, Request, Store, Timestamp,
};
use tidegate_testkit::laws::block_on;

const LIMITS: &str = "policies: [{ name: api, limits: [{ name: all, rate: 2/h }] }]";

fn limiter(guards: &str) -> Limiter {
    Limiter::from_yaml(&format!("guards: [{guards}]\n{LIMITS}")).expect("a valid config")
}

fn ip(text: &str) -> Request<'static> {
    Request::new().ip(text.parse().expect("an address"))
}

#[test]
fn a_denylisted_client_is_refused_and_charges_no_limit() {
    let limiter = limiter("{ name: blacklist, deny: ip, list: [192.0.2.7] }");
    for _ in 0..5 {
        let decision = limiter.check_now(&ip("192.0.2.7")).unwrap();
        assert!(!decision.is_allowed() && decision.is_denied_by_guard());
        assert_eq!(decision.reason(), AnswerReason::Blacklisted);
        assert_eq!(
            decision.guard().map(|it| it.name.as_str()),
            Some("blacklist")
        );
        assert!(decision.binding().is_none() && decision.applied().next().is_none());
        assert_eq!(decision.refusal().status, 429);
    }
    let other = limiter.check_now(&ip("192.0.2.8")).unwrap();
    assert_eq!(other.binding().map(|it| it.remaining()), Some(1));
    assert_eq!(
        (other.reason(), other.guard().is_none()),
        (AnswerReason::Allowed, true)
    );
}

#[test]
fn an_exempt_client_passes_all_guards_and_limits() {
    let limiter = limiter(
        "{ name: closed, deny: user, list: [ann, eve] }, { name: staff, allow: ip, list: [10.0.0.0/8] }",
    );
    for _ in 0..5 {
        let decision = limiter.check_now(&ip("10.1.2.3").user("eve")).unwrap();
        assert!(decision.is_allowed() && decision.is_unlimited());
        assert_eq!(decision.reason(), AnswerReason::Exempt);
    }
    let refused = limiter.check_now(&ip("192.0.2.1").user("eve")).unwrap();
    assert_eq!(refused.reason(), AnswerReason::Blocked);
    let left = limiter.check_now(&ip("192.0.2.1")).unwrap();
    assert_eq!(left.binding().map(|it| it.remaining()), Some(1));
}

#[test]
fn a_shadow_guard_is_reported_with_the_decision() {
    let limiter = limiter("{ name: soon, deny: user, list: [eve], mode: shadow }");
    let decision = limiter.check_now(&Request::new().user("eve")).unwrap();
    assert!(decision.is_allowed() && decision.has_shadow_guards());
    assert_eq!(decision.reason(), AnswerReason::Allowed);
    let watching = decision.shadow_guards().map(|it| it.name.as_str());
    assert_eq!(watching.collect::<Vec<_>>(), ["soon"]);
    let other = limiter.check_now(&Request::new().user("ann")).unwrap();
    assert!(!other.has_shadow_guards() && other.shadow_guards().next().is_none());
}

#[test]
fn tests_evaluate_guards_and_reports_do_not() {
    let limiter = limiter("{ name: closed, deny: user, list: [eve] }");
    let eve = Request::new().user("eve");
    block_on(async {
        assert_eq!(
            limiter.test(&eve).await.unwrap().reason(),
            AnswerReason::Blocked
        );
        let report = limiter.report(&eve.cost(2)).await.unwrap();
        assert!(report.is_allowed() && report.guard().is_none());
        let ann = limiter.check(&Request::new().user("ann")).await.unwrap();
        assert_eq!(ann.reason(), AnswerReason::Limited);
    });
}

#[test]
fn every_descriptor_of_a_refused_call_is_refused() {
    let limiter = limiter("{ name: closed, deny: 'descriptor:user', list: [eve] }");
    let user = |entries| tidegate::Descriptor {
        entries,
        hits: tidegate::DescriptorHits::AsRequest,
        limit: None,
    };
    let described = [user(&[("user", "ann")]), user(&[("user", "eve")])];
    let decision = limiter
        .check_now(&Request::new().descriptors(&described))
        .unwrap();
    assert!(!decision.is_allowed());
    assert!(!decision.descriptor_allowed(0) && !decision.descriptor_allowed(1));
    assert_eq!(decision.descriptors(), 2);
    let fine = Request::new().descriptors(&described[..1]);
    assert!(limiter.check_now(&fine).unwrap().descriptor_allowed(0));
}

#[test]
fn guards_can_be_evaluated_alone_without_a_charge() {
    let limiter = limiter("{ name: closed, deny: attr:project, list: [p1] }");
    let (bad, good) = ([("project", "p1")], [("project", "p2")]);
    for _ in 0..5 {
        let asked = limiter
            .check_guards(&Request::new().attributes(&bad))
            .unwrap();
        assert_eq!(asked.reason(), AnswerReason::Blocked);
        let asked = limiter
            .check_guards(&Request::new().attributes(&good))
            .unwrap();
        assert!(asked.is_allowed());
    }
    let left = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(left.binding().map(|it| it.remaining()), Some(1));
    assert!(
        limiter
            .check_guards(&Request::new().policy("none"))
            .is_err()
    );
}

#[test]
fn without_guards_no_reason_is_reported() {
    let limiter = Limiter::from_yaml(LIMITS).unwrap();
    let decision = limiter.check_now(&Request::new()).unwrap();
    assert!(!decision.reports_reason() && limiter.lists().is_empty());
}

#[test]
fn the_reason_distinguishes_a_missing_identity_from_a_limit() {
    let text =
        "policies: [{ name: api, limits: [{ name: all, key: user, missing: refuse, rate: 1/h }] }]";
    let limiter = Limiter::from_yaml(text).unwrap();
    let nobody = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(nobody.reason(), AnswerReason::NoIdentity);
    let much = limiter
        .check_now(&Request::new().user("ann").cost(2))
        .unwrap();
    assert_eq!(much.reason(), AnswerReason::Limited);
}

#[test]
fn guard_refusals_use_the_guards_own_response_or_that_of_the_reason() {
    let text = "
respond: { profile: collector }
guards:
  - { name: projects, deny: attr:project, list: [p] }
  - { name: blacklist, deny: ip, list: [192.0.2.1] }
  - { name: odd, deny: user, list: [eve], respond: { status: 403, message: Out } }
policies: [{ name: api, limits: [{ name: all, rate: 2/h }] }]
";
    let limiter = Limiter::from_yaml(text).unwrap();
    let refusal = |request: &Request<'_>| limiter.check_now(request).unwrap().refusal().clone();
    let project = refusal(&Request::new().attributes(&[("project", "p")]));
    assert_eq!(project.status, 402);
    assert_eq!(
        project.message.unwrap().as_str(),
        "Project has exceeded the events limit"
    );
    let listed = refusal(&ip("192.0.2.1"));
    assert_eq!((listed.status, listed.message), (429, None));
    let odd = refusal(&Request::new().user("eve"));
    assert_eq!((odd.status, odd.message.unwrap().as_str()), (403, "Out"));
    assert_eq!(odd.content_type, "application/json");
}

#[test]
fn a_list_file_has_a_member_per_line_and_reloads() {
    let folder = Folder::new("guards-file");
    let list = folder.write(
        "list.txt",
        "# who is out\n192.0.2.7 # since May\n\n  198.51.100.0/24\r\nno address\n",
    );
    let config =
        |list: &str| format!("guards: [{{ name: out, deny: ip, file: {list} }}]\n{LIMITS}");
    let file = folder.write("limits.yaml", &config(&list.display().to_string()));
    let limiter = Limiter::from_file(&file).unwrap();
    let reason = |address| limiter.check_guards(&ip(address)).unwrap().reason();
    assert_eq!(reason("192.0.2.7"), AnswerReason::Blacklisted);
    assert_eq!(reason("198.51.100.9"), AnswerReason::Blacklisted);
    assert_eq!(reason("192.0.2.8"), AnswerReason::Allowed);
    let status = limiter.lists().remove(0);
    assert_eq!(
        (status.guard.as_str(), status.members, status.skipped),
        ("out", 2, 1)
    );
    assert!(status.age.is_some() && status.error.is_none());

    let other = folder.write("other.txt", "192.0.2.8\n");
    folder.write("limits.yaml", &config(&other.display().to_string()));
    limiter.reload_file(&file).unwrap();
    assert_eq!(reason("192.0.2.8"), AnswerReason::Blacklisted);
    assert_eq!(reason("192.0.2.7"), AnswerReason::Allowed);
}

#[test]
fn a_reload_keeps_lists_of_unchanged_guards_and_reads_others() {
    let folder = Folder::new("guards-reload");
    let list = folder.write("list.txt", "eve\n");
    let text = |name: &str, mode: &str| {
        format!(
            "guards: [{{ name: {name}, deny: user, file: {}, mode: {mode} }}]\n{LIMITS}",
            list.display()
        )
    };
    let file = folder.write("limits.yaml", &text("out", "enforce"));
    let limiter = Limiter::from_file(&file).unwrap();
    // No task refreshes the list, so the entries read last stay as long as the guard does.
    folder.write("list.txt", "ann\n");
    let refused = |user| {
        !limiter
            .check_guards(&Request::new().user(user))
            .unwrap()
            .is_allowed()
    };
    limiter.reload_file(&file).unwrap();
    assert!(refused("eve") && !refused("ann"));
    folder.write("limits.yaml", &text("out", "shadow"));
    limiter.reload_file(&file).unwrap();
    assert!(!refused("eve"));
    folder.write("limits.yaml", &text("another", "enforce"));
    limiter.reload_file(&file).unwrap();
    assert!(refused("ann") && !refused("eve"));
}

#[test]
fn a_disabled_guard_decides_and_reports_nothing() {
    let limiter = limiter(
        "{ name: staff, allow: user, list: [eve], mode: off }, \
         { name: out, deny: user, list: [eve], mode: off }, \
         { name: soon, deny: user, list: [eve], mode: off }",
    );
    let eve = Request::new().user("eve");
    let decision = limiter.check_now(&eve).unwrap();
    assert_eq!(decision.binding().map(|it| it.remaining()), Some(1));
    assert!(decision.guard().is_none() && !decision.has_shadow_guards());
    assert!(!decision.reports_reason());
    assert!(limiter.check_guards(&eve).unwrap().guard().is_none());
    let lists = limiter.lists();
    assert_eq!(lists.len(), 3);
    assert!(lists.iter().all(|list| !list.enabled && list.members == 1));
}

#[tokio::test(start_paused = true)]
async fn the_list_of_a_guard_that_is_off_is_not_read_and_not_lost() {
    let folder = Folder::new("guards-off");
    let list = folder.write("list.txt", "eve\n");
    let text = |mode: &str| {
        format!(
            "guards: [{{ name: out, mode: {mode}, deny: user, file: {}, refresh: 1s }}]\n{LIMITS}",
            list.display()
        )
    };
    let file = folder.write("limits.yaml", &text("enforce"));
    let limiter = Limiter::from_file(&file).unwrap();
    let refused = |user| {
        let asked = Request::new().user(user);
        !limiter.check_guards(&asked).unwrap().is_allowed()
    };
    assert!(refused("eve"));
    folder.write("limits.yaml", &text("off"));
    limiter.reload_file(&file).unwrap();
    assert!(!refused("eve"));
    folder.write("list.txt", "ann\nbob\n");
    let began = tokio::time::Instant::now();
    kept(&limiter, || began.elapsed() > Duration::from_secs(30)).await;
    let status = limiter.lists().remove(0);
    assert_eq!((status.enabled, status.members), (false, 1), "{status:?}");
    assert!(status.age > Some(Duration::from_secs(29)), "{status:?}");

    folder.write("limits.yaml", &text("enforce"));
    limiter.reload_file(&file).unwrap();
    assert!(refused("ann") && !refused("eve"), "it was read at once");
    let status = limiter.lists().remove(0);
    assert_eq!((status.enabled, status.members), (true, 2), "{status:?}");
}

#[test]
fn a_missing_list_file_is_a_config_error() {
    let text = format!("guards: [{{ name: out, deny: ip, file: /nowhere/list }}]\n{LIMITS}");
    let built = Limiter::builder()
        .environment(ProcessEnvironment::new())
        .yaml(&text);
    let error = built.unwrap_err().to_string();
    assert!(error.contains("`/nowhere/list` cannot be read"), "{error}");
    assert!(Limiter::from_yaml(&text).is_err(), "text looks up no file");
    assert!(Config::from_yaml(&text.replace("file: /nowhere/list", "list: [::1]")).is_ok());
}

/// Runs the refresh of lists until `done`, on a paused clock.
async fn kept(limiter: &Limiter, done: impl Fn() -> bool) {
    let keeping = std::pin::pin!(limiter.keep_lists());
    let waiting = std::pin::pin!(async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    futures_util::future::select(keeping, waiting).await;
    assert!(done());
}

#[tokio::test(start_paused = true)]
async fn a_file_is_read_again_and_one_that_vanishes_leaves_its_list() {
    let folder = Folder::new("guards-again");
    let list = folder.write("list.txt", "eve\n");
    let text = format!(
        "guards: [{{ name: out, deny: user, file: {}, refresh: 1s }}]\n{LIMITS}",
        list.display()
    );
    let limiter = Limiter::from_file(folder.write("limits.yaml", &text)).unwrap();
    let refused = |user| {
        !limiter
            .check_guards(&Request::new().user(user))
            .unwrap()
            .is_allowed()
    };
    assert!(refused("eve"));
    folder.write("list.txt", "ann\nbob\n");
    kept(&limiter, || refused("ann")).await;
    assert!(!refused("eve"));

    std::fs::remove_file(&list).unwrap();
    let started = tokio::time::Instant::now();
    kept(&limiter, || limiter.lists()[0].failures >= 4).await;
    assert!(started.elapsed() >= Duration::from_secs(3), "once a second");
    assert!(refused("ann") && refused("bob"));
    let status = limiter.lists().remove(0);
    assert_eq!(status.members, 2);
    assert!(
        status.failing_for.is_some() && status.error.is_some(),
        "{status:?}"
    );
    assert!(status.age > Some(Duration::from_secs(3)), "{status:?}");

    folder.write("list.txt", "eve\n");
    kept(&limiter, || refused("eve")).await;
    let status = limiter.lists().remove(0);
    assert!(
        status.error.is_none() && status.failing_for.is_none(),
        "{status:?}"
    );
    assert!(status.failures >= 4);
}

#[tokio::test(start_paused = true)]
async fn a_restored_file_waited_for_the_backoff_of_an_outage() {
    let folder = Folder::new("guards-back");
    let list = folder.write("list.txt", "eve\n");
    let text = format!(
        "guards: [{{ name: out, deny: user, file: {}, refresh: 1h }}]\n{LIMITS}",
        list.display()
    );
    let limiter = Limiter::from_file(folder.write("limits.yaml", &text)).unwrap();
    std::fs::remove_file(&list).unwrap();
    let failing = || limiter.lists()[0].failing_for.unwrap_or_default();
    kept(&limiter, || failing() >= Duration::from_secs(600)).await;
    folder.write("list.txt", "ann\n");
    let started = tokio::time::Instant::now();
    kept(&limiter, || failing() == Duration::ZERO).await;
    let waited = started.elapsed();
    assert!(waited <= Duration::from_secs(3), "{waited:?}");
    assert_eq!(limiter.lists()[0].members, 1);
}

#[tokio::test(start_paused = true)]
async fn list_maintenance_follows_a_reload_and_ends_with_the_limiter() {
    let folder = Folder::new("guards-follow");
    let list = folder.write("list.txt", "eve\n");
    let file = folder.write("limits.yaml", LIMITS);
    let limiter = Limiter::from_file(&file).unwrap();
    let keeping = limiter.keep_lists();
    let asked = limiter.clone();
    let refused = move |user| {
        !asked
            .check_guards(&Request::new().user(user))
            .unwrap()
            .is_allowed()
    };
    let reload = async {
        let text = format!(
            "guards: [{{ name: out, deny: user, file: {}, refresh: 1s }}]\n{LIMITS}",
            list.display()
        );
        folder.write("limits.yaml", &text);
        limiter.reload_file(&file).unwrap();
        folder.write("list.txt", "ann\n");
        while !refused("ann") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop((limiter, refused));
    };
    // Both come to an end.
    futures_util::future::join(keeping, reload).await;
}

#[tokio::test(start_paused = true)]
async fn a_set_in_this_process_is_read_and_its_members_leave() {
    let text = format!(
        "store: {{ url: 'redis://127.0.0.1' }}
guards: [{{ name: out, deny: ip, redis: {{ set: banned }} }}]
{LIMITS}"
    );
    let builder = Limiter::builder().yaml(&text).unwrap();
    let limiter = builder.store_url("memory").unwrap().build().unwrap();
    let sets = limiter.store().shared_state().unwrap().sets().unwrap();
    for (member, length) in [("192.0.2.1", None), ("192.0.2.2", Some(Duration::ZERO))] {
        let members = [member.as_bytes()];
        sets.add("banned", &members, length).await.unwrap();
    }
    limiter.load_lists().await;
    let refused = |address: &str| {
        let request = Request::new().ip(address.parse().unwrap());
        !limiter.check_guards(&request).unwrap().is_allowed()
    };
    assert!(refused("192.0.2.1") && !refused("192.0.2.2"));
    assert_eq!(limiter.lists()[0].members, 1);
}

#[test]
fn limits_in_code_are_guarded_by_the_config() {
    let text = format!("guards: [{{ name: out, deny: 'header:x-bot', list: [b] }}]\n{LIMITS}");
    let limit = tidegate::LimitSpec::new("mine").band("1/h");
    let limiter = Limiter::builder()
        .config(Config::from_yaml(&text).unwrap())
        .limit(limit)
        .clock(ManualClock::at(Timestamp::from_millis(1)))
        .build()
        .unwrap();
    let rules = limiter.rules().unwrap();
    let policy = rules.policy(Some("default")).unwrap();
    assert!(policy.header_names().eq(["x-bot"]));
    let request = Request::new().policy("default").headers(&[("X-Bot", "b")]);
    assert_eq!(
        limiter.check_now(&request).unwrap().reason(),
        AnswerReason::Blocked
    );
}

/// Regression: a reload waited for the file on the serving thread, up to 30 s, and read it a second time.
#[tokio::test]
async fn a_list_that_hangs_stopped_the_thread_that_reloads() {
    let limiter = Limiter::from_yaml(LIMITS).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let text = format!("guards: [{{ name: out, deny: user, file: {path} }}]\n{LIMITS}");
    let config = Config::parse(&text, "test", &ProcessEnvironment::new()).unwrap();
    let mut reading = Box::pin(limiter.preload_lists(&config));
    assert!(reading.as_mut().now_or_never().is_none());
    writer.write_all(b"eve\n").unwrap();
    drop(writer);
    reading.await;
    limiter.reload(config).unwrap();
    // A second read of the pipe would find it empty.
    let lists = limiter.lists();
    let found: Vec<_> = lists.iter().map(|it| (it.members, it.failures)).collect();
    assert_eq!(found, [(1, 0)]);
}
