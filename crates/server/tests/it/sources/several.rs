//! Sources together: their order, and what one refuses to another.

use super::double::Double;
use super::kit::{PATIENCE, Program, REFUSED, SERVED, policies};
use crate::kit::post;
use tokio::net::TcpListener;
use tokio::time::timeout;

fn config(a: &Double, b: &Double, own: &str) -> String {
    format!(
        "sources:
  - {{ name: a, http: {{ url: 'http://{}/', refresh: 100ms }} }}
  - {{ name: b, http: {{ url: 'http://{}/', refresh: 100ms }} }}
{own}",
        a.address, b.address
    )
}

/// The limit of the policy that answers where none is asked for.
async fn first(program: &Program) -> String {
    let json = post(program.http, "{}").await.json();
    json["band"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_file_comes_first_and_then_the_sources_in_the_order_of_the_list() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("of-a", "1/s"));
    b.say(None, &policies("of-b", "2/s"));
    let mut program = Program::start(&config(&a, &b, "")).await;
    assert_eq!(first(&program).await, "1/s");
    let own = "policies: [{ name: own, limits: [{ name: all, rate: 3/s }] }]";
    program.write(&config(&a, &b, own));
    program
        .process
        .logs("the configuration was reloaded", ("policies_added", "own"))
        .await;
    assert_eq!(first(&program).await, "3/s");
    for (policy, rate) in [("of-a", "1/s"), ("of-b", "2/s")] {
        assert_eq!(program.band(policy).await, rate);
    }
}

#[tokio::test]
async fn one_name_in_two_places_is_refused_by_both_names_and_settled_once_one_gives_way() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let mut program = Program::start(&config(&a, &b, "")).await;
    b.say(None, &policies("api", "3/s"));
    program.process.logs(REFUSED, ("source", "b")).await;
    let log = program.process.logged.join("\n");
    assert!(
        log.contains("there are two policies with the name `api`"),
        "{log}"
    );
    assert!(log.contains("the first is on line 1 of a"), "{log}");
    assert_eq!(
        (program.band("api").await, program.band("web").await),
        ("1/s".into(), "2/s".into())
    );
    // What was refused waits for nothing but that.
    a.say(None, &policies("other", "1/s"));
    program
        .process
        .logs("policy of this source is served", ("source", "b"))
        .await;
    assert_eq!(
        (program.band("api").await, program.band("other").await),
        ("3/s".into(), "1/s".into())
    );
}

#[tokio::test]
async fn a_source_that_the_file_no_longer_lists_is_served_no_longer_and_a_new_one_is() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("of-a", "1/s"));
    b.say(None, &policies("of-b", "2/s"));
    let only = |name: &str, it: &Double| {
        format!(
            "sources: [{{ name: {name}, http: {{ url: 'http://{}/', refresh: 100ms }} }}]",
            it.address
        )
    };
    let mut program = Program::start(&only("a", &a)).await;
    program.write(&only("b", &b));
    let line = program
        .process
        .logs("the configuration was reloaded", ("policies_added", "of-b"))
        .await;
    assert_eq!(line["policies_removed"], "of-a", "{line}");
    b.say(Some("\"9\""), &policies("of-b", "9/s"));
    program.serves("b", "\"9\"").await;
    assert_eq!(program.band("of-b").await, "9/s");
    let stale = "tidegate_source_stale{source=\"a\"}";
    assert_eq!(program.sample(stale).await, None);
    // Nobody is left who would ask it.
    let before = a.times();
    b.asked(10).await;
    assert_eq!(a.times(), before);
}

#[tokio::test]
async fn what_need_not_be_there_is_served_without_until_it_is() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("api", "1/s"));
    let text = config(&a, &b, "").replace("name: b,", "name: b, required: false,");
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "1/s");
    assert!(program.is_stale("b").await);
    b.say(None, &policies("web", "2/s"));
    program
        .process
        .logs("policy of this source is served", ("source", "b"))
        .await;
    assert_eq!(program.band("web").await, "2/s");
}

/// One source that nobody looks at but when told to.
fn seldom(source: &Double) -> String {
    format!(
        "sources: [{{ name: a, http: {{ url: 'http://{}/', refresh: 1h }} }}]",
        source.address
    )
}

#[tokio::test]
async fn what_a_source_said_was_lost_when_it_was_asked_beside_a_file_that_is_wrong() {
    let a = Double::away().await;
    a.say(Some("\"1\""), &policies("api", "1/s"));
    let mut program = Program::start(&seldom(&a)).await;
    // Neither one that cannot be read nor one whose sources are nonsense is in the way.
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
async fn a_source_was_kept_that_went_with_a_file_which_was_served_on_a_sources_word() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(Some("\"1\""), &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let both = config(&a, &b, "").replace("100ms", "1h");
    let mut program = Program::start(&both).await;
    // Without the other, but with a policy of the same name as this one's.
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
    timeout(PATIENCE, is_gone).await.expect("nobody lists it");
}

#[tokio::test]
async fn a_new_source_that_does_not_answer_held_up_everybody_else() {
    let a = Double::away().await;
    a.say(Some("\"1\""), &policies("api", "1/s"));
    let listed = |more: &str| {
        let address = a.address;
        format!(
            "sources:\n  - {{ name: a, http: {{ url: 'http://{address}/', refresh: 100ms }} }}\n{more}"
        )
    };
    let mut program = Program::start(&listed("")).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let more = format!("  - {{ name: b, http: {{ url: 'http://{address}/', timeout: 10min }} }}\n");
    program.write(&listed(&more));
    // It is asked, and says nothing.
    let (_asked, _) = silent.accept().await.unwrap();
    a.say(Some("\"2\""), &policies("api", "2/s"));
    program.serves("a", "\"2\"").await;
    assert_eq!(program.band("api").await, "2/s");
    // Nor is the file waited with for as long as that one may take.
    program.process.logs(REFUSED, ("source", "file")).await;
}

#[tokio::test]
async fn a_new_source_of_a_file_that_was_refused_was_told_to_be_served() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("api", "1/s"));
    b.say(None, &policies("web", "2/s"));
    let both = config(&a, &b, "");
    let only_a: Vec<&str> = both.lines().take(2).collect();
    let mut program = Program::start(&only_a.join("\n")).await;
    let own = |name: &str| {
        format!("policies: [{{ name: {name}, limits: [{{ name: all, rate: 3/s }}] }}]")
    };
    // Its own policy has the name of one of the other source.
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
async fn what_is_refused_was_complained_of_again_with_every_change_of_another() {
    let (a, b) = (Double::away().await, Double::away().await);
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
    assert_eq!(program.loads("b", "refused").await, 1);
    let refused = "tidegate_reloads_total{outcome=\"refused\"}";
    assert_eq!(program.sample(refused).await, Some(1.0));
    // It is refused still.
    let refused = "tidegate_source_refused{source=\"b\"}";
    assert_eq!(program.sample(refused).await, Some(1.0));
}

#[tokio::test]
async fn a_source_that_a_file_in_vain_listed_elsewhere_was_there_twice() {
    let (a, b) = (Double::away().await, Double::away().await);
    a.say(None, &policies("api", "1/s"));
    let at = |server: &Double| {
        let url = format!("http://{}/", server.address);
        format!("sources: [{{ name: a, http: {{ url: '{url}', refresh: 100ms, timeout: 1s }} }}]")
    };
    let mut program = Program::start(&at(&a)).await;
    program.write(&at(&b));
    program.process.logs(REFUSED, ("source", "file")).await;
    let page = crate::kit::get(program.admin, "/metrics").await.body;
    let of_it = page
        .lines()
        .filter(|it| it.starts_with("tidegate_source_stale{source=\"a\"}"));
    // The one that is served answers.
    assert_eq!(
        of_it.collect::<Vec<_>>(),
        ["tidegate_source_stale{source=\"a\"} 0"]
    );
    b.say(None, &policies("api", "2/s"));
    program.process.logs(SERVED, ("source", "a")).await;
    assert_eq!(program.band("api").await, "2/s");
    assert_eq!(program.loads("a", "applied").await, 1);
}
