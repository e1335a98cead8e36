//! Sources together: their order, and what one refuses to another.

use super::double::Double;
use super::kit::{Program, REFUSED, policies};
use crate::kit::post;

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
