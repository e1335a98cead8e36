//! A document at a URL.

use super::double::Double;
use super::kit::{AWAY, Program, REFUSED, nth_rate, policies, under_load};
use crate::addresses::alerts::{Hook, own};
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use serde_json::json;
use std::time::Duration;

fn config(server: &Double) -> String {
    format!(
        "sources: [{{ name: central, http: {{ url: 'http://{}/policies', token: hush, refresh: 100ms }} }}]",
        server.address
    )
}

#[tokio::test]
async fn a_document_is_fetched_again_only_if_it_has_changed() {
    let server = Double::away().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    assert_eq!(program.band("api").await, "5/s");
    let asked = server.asked(2).await;
    assert!(asked.starts_with("GET /policies HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer hush\r\n"), "{asked}");
    assert!(asked.contains("if-none-match: \"1\"\r\n"), "{asked}");
    assert_eq!(program.loads("central", "applied").await, 1);
    server.say(Some("\"2\""), &policies("api", "6/s"));
    program.serves("central", "\"2\"").await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn without_a_tag_a_document_is_known_by_what_it_says() {
    let server = Double::away().await;
    server.say(None, &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    server.asked(3).await;
    assert_eq!(program.loads("central", "applied").await, 1);
    server.say(None, &policies("api", "6/s"));
    program
        .process
        .logs(super::kit::SERVED, ("source", "central"))
        .await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn a_document_that_is_wrong_is_told_by_the_name_of_its_source_and_its_line() {
    let server = Double::away().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    server.say(Some("\"2\""), "policies:\n  - name: api\n    limits: [{ name: all, rate: fast }]\nlisten: { http: '127.0.0.1:1' }");
    program.process.logs(REFUSED, ("source", "central")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("central:3:33:"), "{log}");
    assert!(
        log.contains("central:4:1: `listen` is not for a source to say"),
        "{log}"
    );
    assert_eq!(program.band("api").await, "5/s");
    server.fail(500);
    program.process.logs(AWAY, ("source", "central")).await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn what_is_odd_about_the_file_was_told_again_with_every_change_of_a_source() {
    let server = Double::away().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let own = "policies: [{ name: own, limits: [{ name: '${NAME}', rate: 1/s, missing: skip }] }]";
    let text = format!("{own}\n{}", config(&server));
    let mut program = Program::start_with(&text, &[("NAME", "all"), ("MORE", "x")]).await;
    for nth in 2..5 {
        let tag = format!("\"{nth}\"");
        server.say(Some(&tag), &policies("api", &nth_rate(nth)));
        program.serves("central", &tag).await;
    }
    let told = |program: &Program, what: &str| {
        let logged = program.process.logged.iter();
        logged.filter(|line| line.contains(what)).count()
    };
    let (variables, odd) = (
        "environment variables took effect",
        "`missing` has no effect",
    );
    let log = program.process.logged.join("\n");
    assert_eq!(told(&program, variables), 1, "{log}");
    assert_eq!(told(&program, odd), 1, "{log}");
    // Whoever asks for all of it hears what is still odd.
    program.process.signal("HUP").await;
    program
        .process
        .logs("the configuration was reloaded", ("level", "INFO"))
        .await;
    assert_eq!(told(&program, variables), 1);
    // And what is new is told by itself.
    program.write(&text.replace("${NAME}", "${NAME}-${MORE}"));
    program
        .process
        .logs(variables, ("variables", "MORE, NAME"))
        .await;
    assert_eq!(told(&program, odd), 2, "before that");
}

#[tokio::test]
async fn a_document_in_the_language_of_fluxgate_is_translated_as_it_changes() {
    let server = Double::away().await;
    let rule_set = |capacity: u64| {
        json!([{
            "ruleSetId": "checkout",
            "rules": [{
                "id": "per-ip",
                "scope": "PER_IP",
                "bands": [{ "capacity": capacity, "windowSeconds": 60, "label": "minute" }],
            }],
        }])
        .to_string()
    };
    server.say(Some("\"1\""), &rule_set(5));
    let text = config(&server).replace("token: hush", "format: fluxgate");
    let mut program = Program::start(&text).await;
    // Each of another address, so that each has used nothing.
    let remaining = async |program: &Program, nth: u8| {
        let asked = json!({ "policy": "checkout", "ip": format!("192.0.2.{nth}") });
        let reply = crate::kit::post(program.http, &asked.to_string()).await;
        reply.json()["remaining"].clone()
    };
    assert_eq!(remaining(&program, 1).await, 4);
    server.say(Some("\"2\""), &rule_set(9));
    program.serves("central", "\"2\"").await;
    assert_eq!(remaining(&program, 2).await, 8);
    // What is wrong in their words is told, and changes nothing.
    server.say(Some("\"3\""), &rule_set(0));
    program.process.logs(REFUSED, ("source", "central")).await;
    assert_eq!(remaining(&program, 3).await, 8);
}

/// Half a minute is what passes before anybody is told, and as much until it is asked once more.
#[tokio::test]
async fn people_are_told_of_a_source_that_stays_away_and_that_it_is_back() {
    let patience = Duration::from_mins(2);
    let server = Double::away().await;
    let mut hook = Hook::listen().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let mut program = Program::start(&format!("{}{}", hook.config(), config(&server))).await;
    server.fail(503);
    program.process.logs(AWAY, ("source", "central")).await;
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("stale", "policy of `central`"));
    assert!(program.is_stale("central").await);
    assert_eq!(program.band("api").await, "5/s");
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("stale", "policy of `central`, again"));
    assert!(!program.is_stale("central").await);
}

#[tokio::test]
async fn people_were_told_of_a_rejected_configuration_late_or_not_at_all() {
    let patience = Duration::from_mins(2);
    let server = Double::away().await;
    let mut hook = Hook::listen().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let text = format!("{}{}", hook.config(), config(&server));
    let mut program = Program::start(&text).await;
    server.say(Some("\"2\""), &policies("api", "fast"));
    program.process.logs(REFUSED, ("source", "central")).await;
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `central`"));
    server.say(Some("\"3\""), &policies("api", "6/s"));
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `central`, again"));
    // The file is told of in the same way.
    program.write(&format!("{text}\nno_such_field: 1\n"));
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `file`"));
    program.write(&text);
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `file`, again"));
}

#[tokio::test]
async fn a_document_that_said_nothing_any_more_lifted_every_limit_of_its_source() {
    let server = Double::away().await;
    server.say(None, &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    for nothing in [
        "",
        "{}",
        "# nothing",
        "policies:",
        "policies: []\nguards: []",
    ] {
        server.say(None, nothing);
        program.process.logs(REFUSED, ("source", "central")).await;
        assert_eq!(program.band("api").await, "5/s", "{nothing}");
    }
    let log = program.process.logged.join("\n");
    assert!(
        log.contains("it has no policies, guards or routes any more"),
        "{log}"
    );
    server.say(Some("\"2\""), &policies("api", "6/s"));
    program.serves("central", "\"2\"").await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn a_document_that_may_have_been_cut_off_was_taken_for_whole() {
    let server = Double::away().await;
    server.say(None, &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    server.say_unbounded(&policies("other", "6/s"));
    let line = program.process.logs(AWAY, ("source", "central")).await;
    assert!(
        line["error"].as_str().unwrap().contains("cut off"),
        "{line}"
    );
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_source_that_named_a_file_of_this_machine_had_it_read() {
    let server = Double::away().await;
    let folder = Folder::make();
    let secret = folder.write("list.txt", "192.0.2.1\n");
    let guard = format!("guards: [{{ name: g, refuse: ip, file: '{secret}' }}]");
    server.say(None, &format!("{guard}\n{}", policies("api", "5/s")));
    let file = folder.write("tidegate.yaml", config(&server));
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stdout);
    let why = "a source of policy cannot have files read";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[tokio::test]
async fn what_a_source_says_cannot_have_variables_of_this_process_told() {
    let server = Double::away().await;
    server.say(None, &policies("${PATH}", "5/s"));
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", config(&server));
    let mut command = tidegate(&["validate", &file]);
    command.env("PATH", "a-secret-path");
    let ended = run(command).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stdout);
    assert!(
        ended
            .stderr
            .contains("what a source says cannot refer to variables"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("a-secret-path"), "{}", ended.stderr);
}

#[tokio::test]
async fn validate_asks_the_sources_and_tells_what_is_wrong_with_them() {
    let server = Double::away().await;
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", config(&server));
    server.say(None, &policies("api", "5/s"));
    let ended = run(tidegate(&["validate", "--explain", &file])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("1 policy, 1 limit"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("`central`"), "{}", ended.stdout);
    server.say(None, &policies("api", "fast"));
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("central:1:"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_question_is_answered_while_a_document_changes() {
    let server = Double::away().await;
    server.say(Some("\"0\""), &policies("api", &nth_rate(0)));
    let mut program = Program::start(&config(&server)).await;
    under_load(&mut program, "api", async |program, nth, rate| {
        let tag = format!("\"{nth}\"");
        server.say(Some(&tag), &policies("api", &rate));
        program.serves("central", &tag).await;
    })
    .await;
}
