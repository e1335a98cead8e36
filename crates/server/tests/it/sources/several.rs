//! Several sources: their order, and conflicts.

use super::double::Double;
use super::kit::{PATIENCE, Program, REFUSED, SERVED, policies};
use crate::kit::{in_time, post};
use tokio::net::TcpListener;
use tokio::time::timeout;

fn config(a: &Double, b: &Double, own: &str) -> String {
    format!(
        "sources:
  - {{ name: a, http: {{ url: 'http://{}/' }}, refresh: 100ms }}
  - {{ name: b, http: {{ url: 'http://{}/' }}, refresh: 100ms }}
{own}",
        a.address, b.address
    )
}

/// Returns the limit of the default policy.
async fn first(program: &Program) -> String {
    let json = post(program.http, "{}").await.json();
    json["band"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_file_comes_first_and_then_the_sources_in_the_order_of_the_list() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("of-a", "1/s"));
    b.say(None, &policies("of-b", "2/s"));
    let mut program = Program::start(&config(&a, &b, "")).await;
    assert_eq!(first(&program).await, "1/s");
    let own = "policies: [{ name: own, limits: [{ name: all, rate: 3/s }] }]";
    program.write(&config(&a, &b, own));
    program
        .process
        .logs("config reloaded", ("policies_added", "own"))
        .await;
    assert_eq!(first(&program).await, "3/s");
    for (policy, rate) in [("of-a", "1/s"), ("of-b", "2/s")] {
        assert_eq!(program.band(policy).await, rate);
    }
}

#[tokio::test]
async fn a_name_in_two_sources_is_rejected_until_one_is_removed() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let mut program = Program::start(&config(&a, &b, "")).await;
    b.say(None, &policies("api", "3/s"));
    program.process.logs(REFUSED, ("source", "b")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("two policies are named `api`"), "{log}");
    assert!(log.contains("the first is on line 1 of a"), "{log}");
    assert_eq!(
        (program.band("api").await, program.band("web").await),
        ("1/s".into(), "2/s".into())
    );
    // The rejected document was blocked by that only.
    a.say(None, &policies("other", "1/s"));
    program
        .process
        .logs("config source loaded", ("source", "b"))
        .await;
    assert_eq!(
        (program.band("api").await, program.band("other").await),
        ("3/s".into(), "1/s".into())
    );
}

#[tokio::test]
async fn a_source_that_the_file_no_longer_lists_is_served_no_longer_and_a_new_one_is() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("of-a", "1/s"));
    b.say(None, &policies("of-b", "2/s"));
    let only = |name: &str, it: &Double| {
        format!(
            "sources: [{{ name: {name}, http: {{ url: 'http://{}/' }}, refresh: 100ms }}]",
            it.address
        )
    };
    let mut program = Program::start(&only("a", &a)).await;
    program.write(&only("b", &b));
    let line = program
        .process
        .logs("config reloaded", ("policies_added", "of-b"))
        .await;
    assert_eq!(line["policies_removed"], "of-a", "{line}");
    b.say(Some("\"9\""), &policies("of-b", "9/s"));
    program.serves("b", "\"9\"").await;
    assert_eq!(program.band("of-b").await, "9/s");
    let stale = "tidegate_source_stale{source=\"a\"}";
    assert_eq!(program.sample(stale).await, None);
    // The source is not configured any more.
    let before = a.times();
    b.asked(10).await;
    assert_eq!(a.times(), before);
}

#[tokio::test]
async fn an_optional_source_is_not_awaited() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("api", "1/s"));
    let text = config(&a, &b, "").replace("name: b,", "name: b, required: false,");
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "1/s");
    assert!(program.is_stale("b").await);
    b.say(None, &policies("web", "2/s"));
    program
        .process
        .logs("config source loaded", ("source", "b"))
        .await;
    assert_eq!(program.band("web").await, "2/s");
}

#[tokio::test]
async fn without_its_only_source_the_program_starts_if_that_is_optional() {
    let only = Double::unreachable().await;
    let text = format!(
        "sources: [{{ name: a, required: false, http: {{ url: 'http://{}/' }}, refresh: 100ms }}]",
        only.address
    );
    let mut program = Program::start(&text).await;
    assert!(program.is_stale("a").await);
    only.say(None, &policies("api", "1/s"));
    program
        .process
        .logs("config source loaded", ("source", "a"))
        .await;
    assert_eq!(program.band("api").await, "1/s");
}

/// Returns a config with one source that is loaded only on request.
fn seldom(source: &Double) -> String {
    format!(
        "sources: [{{ name: a, http: {{ url: 'http://{}/' }}, refresh: 1h }}]",
        source.address
    )
}

#[tokio::test]
async fn a_source_update_next_to_an_invalid_file_was_lost() {
    let a = Double::unreachable().await;
    a.say(Some("\"1\""), &policies("api", "1/s"));
    let mut program = Program::start(&seldom(&a)).await;
    // Neither an unreadable file nor one with invalid sources blocks it.
    for (version, file) in [
        ("\"2\"", "policies: ["),
        ("\"3\"", "sources: [{ http: 5 }]"),
    ] {
        a.say(
            Some(version),
            &policies("api", "2/s").replace('2', &version[1..2]),
        );
        program.write(file);
        program.process.signal("HUP").await;
        program.serves("a", version).await;
        assert_eq!(program.band("api").await, format!("{}/s", &version[1..2]));
    }
}

#[tokio::test]
async fn a_removed_source_was_kept_after_a_source_triggered_the_reload() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(Some("\"1\""), &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let both = config(&a, &b, "").replace("100ms", "1h");
    let mut program = Program::start(&both).await;
    // Without the other source, but with a policy of the same name as this one's.
    let own = "policies: [{ name: api, limits: [{ name: all, rate: 3/s }] }]";
    program.write(&format!("{}\n{own}", seldom(&a)));
    program.process.logs(REFUSED, ("source", "file")).await;
    program.write("policies: [");
    program.process.logs(REFUSED, ("source", "file")).await;
    a.say(Some("\"2\""), &policies("other", "1/s"));
    program.process.signal("HUP").await;
    program.serves("a", "\"2\"").await;
    assert_eq!(program.band("api").await, "3/s");
    let stale = "tidegate_source_stale{source=\"b\"}";
    let is_gone = async { while program.sample(stale).await.is_some() {} };
    timeout(PATIENCE, is_gone)
        .await
        .expect("no list contains it");
}

#[tokio::test]
async fn a_new_unresponsive_source_blocked_all_others() {
    let a = Double::unreachable().await;
    a.say(Some("\"1\""), &policies("api", "1/s"));
    let listed = |more: &str| {
        let address = a.address;
        format!(
            "sources:\n  - {{ name: a, http: {{ url: 'http://{address}/' }}, refresh: 100ms }}\n{more}"
        )
    };
    let mut program = Program::start(&listed("")).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let more = format!("  - {{ name: b, http: {{ url: 'http://{address}/' }}, timeout: 10min }}\n");
    program.write(&listed(&more));
    // It gets a request, and sends nothing.
    let (_asked, _) = in_time("a request", silent.accept()).await.unwrap();
    a.say(Some("\"2\""), &policies("api", "2/s"));
    program.serves("a", "\"2\"").await;
    assert_eq!(program.band("api").await, "2/s");
    // The file does not wait for the source's timeout either.
    program.process.logs(REFUSED, ("source", "file")).await;
}

#[tokio::test]
async fn a_new_source_of_a_rejected_file_was_reported_as_served() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let both = config(&a, &b, "");
    let only_a: Vec<&str> = both.lines().take(2).collect();
    let mut program = Program::start(&only_a.join("\n")).await;
    let own = |name: &str| {
        format!("policies: [{{ name: {name}, limits: [{{ name: all, rate: 3/s }}] }}]")
    };
    // Its own policy has the name of a policy in the other source.
    program.write(&config(&a, &b, &own("api")));
    program.process.logs(REFUSED, ("source", "file")).await;
    b.asked(3).await;
    assert_eq!(program.loads("b", "applied").await, 0);
    program.write(&config(&a, &b, &own("own")));
    program.process.logs(SERVED, ("source", "b")).await;
    assert_eq!(
        (program.band("own").await, program.band("web").await),
        ("3/s".into(), "2/s".into())
    );
    assert_eq!(program.loads("b", "applied").await, 1);
    let served = |line: &&String| line.contains(SERVED) && line.contains("\"b\"");
    assert_eq!(program.process.logged.iter().filter(served).count(), 1);
}

#[tokio::test]
async fn a_rejection_was_logged_again_with_every_change_of_another_source() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let mut program = Program::start(&config(&a, &b, "")).await;
    b.say(None, &policies("api", "3/s"));
    program.process.logs(REFUSED, ("source", "b")).await;
    for rate in ["4/s", "5/s"] {
        a.say(Some(&format!("\"{rate}\"")), &policies("api", rate));
        program.serves("a", &format!("\"{rate}\"")).await;
        assert_eq!(program.band("api").await, rate);
    }
    assert_eq!(program.loads("b", "rejected").await, 1);
    let refused = "tidegate_reloads_total{outcome=\"rejected\"}";
    assert_eq!(program.sample(refused).await, Some(1.0));
    // It is still rejected.
    let refused = "tidegate_source_rejected{source=\"b\"}";
    assert_eq!(program.sample(refused).await, Some(1.0));
}

#[tokio::test]
async fn a_source_moved_by_a_rejected_file_was_listed_twice() {
    let (a, b) = (Double::unreachable().await, Double::unreachable().await);
    a.say(None, &policies("api", "1/s"));
    let at = |server: &Double| {
        let url = format!("http://{}/", server.address);
        format!("sources: [{{ name: a, http: {{ url: '{url}' }}, refresh: 100ms, timeout: 1s }}]")
    };
    let mut program = Program::start(&at(&a)).await;
    program.write(&at(&b));
    program.process.logs(REFUSED, ("source", "file")).await;
    let page = crate::kit::get(program.admin, "/metrics").await.body;
    let of_it = page
        .lines()
        .filter(|it| it.starts_with("tidegate_source_stale{source=\"a\"}"));
    // The metric is about the source in use.
    assert_eq!(
        of_it.collect::<Vec<_>>(),
        ["tidegate_source_stale{source=\"a\"} 0"]
    );
    b.say(None, &policies("api", "2/s"));
    program.process.logs(SERVED, ("source", "a")).await;
    assert_eq!(program.band("api").await, "2/s");
    assert_eq!(program.loads("a", "applied").await, 1);
}
