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
        "sources: [{{ name: central, http: {{ url: 'http://{}/policies', token: hush }}, refresh: 100ms }}]",
        server.address
    )
}

#[tokio::test]
async fn a_document_is_fetched_again_only_if_it_has_changed() {
    let server = Double::unreachable().await;
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
async fn without_an_etag_a_document_is_versioned_by_its_text() {
    let server = Double::unreachable().await;
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
async fn an_invalid_document_is_reported_by_source_and_line() {
    let server = Double::unreachable().await;
    server.say(Some("\"1\""), &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    server.say(Some("\"2\""), "policies:\n  - name: api\n    limits: [{ name: all, rate: fast }]\nlisten: { http: '127.0.0.1:1' }");
    program.process.logs(REFUSED, ("source", "central")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("central:3:33:"), "{log}");
    assert!(
        log.contains("central:4:1: `listen` is not allowed in a config source"),
        "{log}"
    );
    assert_eq!(program.band("api").await, "5/s");
    server.fail(500);
    program.process.logs(AWAY, ("source", "central")).await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn warnings_of_the_file_were_repeated_with_every_source_change() {
    let server = Double::unreachable().await;
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
    let (variables, odd) = ("environment variables applied", "`missing` has no effect");
    let log = program.process.logged.join("\n");
    assert_eq!(told(&program, variables), 1, "{log}");
    assert_eq!(told(&program, odd), 1, "{log}");
    // An explicit reload reports all existing warnings.
    program.process.signal("HUP").await;
    program
        .process
        .logs("config reloaded", ("level", "INFO"))
        .await;
    assert_eq!(told(&program, variables), 1);
    // New warnings are reported automatically.
    program.write(&text.replace("${NAME}", "${NAME}-${MORE}"));
    program
        .process
        .logs(variables, ("variables", "MORE, NAME"))
        .await;
    assert_eq!(told(&program, odd), 2, "before that");
}

#[tokio::test]
async fn a_document_in_the_language_of_fluxgate_is_translated_as_it_changes() {
    let server = Double::unreachable().await;
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
    // Each from another address, so that each has used nothing.
    let remaining = async |program: &Program, nth: u8| {
        let asked = json!({ "policy": "checkout", "ip": format!("192.0.2.{nth}") });
        let reply = crate::kit::post(program.http, &asked.to_string()).await;
        reply.json()["remaining"].clone()
    };
    assert_eq!(remaining(&program, 1).await, 4);
    server.say(Some("\"2\""), &rule_set(9));
    program.serves("central", "\"2\"").await;
    assert_eq!(remaining(&program, 2).await, 8);
    // An error in the document is reported, and changes nothing.
    server.say(Some("\"3\""), &rule_set(0));
    program.process.logs(REFUSED, ("source", "central")).await;
    assert_eq!(remaining(&program, 3).await, 8);
}

/// An alert is sent after half a minute, and the next attempt follows half a minute later.
#[tokio::test]
async fn a_long_source_outage_and_its_end_are_alerted() {
    let patience = Duration::from_mins(2);
    let server = Double::unreachable().await;
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
async fn a_rejected_config_was_alerted_late_or_never() {
    let patience = Duration::from_mins(2);
    let server = Double::unreachable().await;
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
    // The file is reported in the same way.
    program.write(&format!("{text}\nno_such_field: 1\n"));
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `file`"));
    program.write(&text);
    let told = hook.next_within(patience).await;
    assert_eq!(told, own("config", "policy of `file`, again"));
}

#[tokio::test]
async fn an_emptied_document_lifted_every_limit_of_its_source() {
    let server = Double::unreachable().await;
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
async fn a_possibly_truncated_document_was_accepted() {
    let server = Double::unreachable().await;
    server.say(None, &policies("api", "5/s"));
    let mut program = Program::start(&config(&server)).await;
    server.say_unbounded(&policies("other", "6/s"));
    let line = program.process.logs(AWAY, ("source", "central")).await;
    assert!(
        line["error"].as_str().unwrap().contains("truncated"),
        "{line}"
    );
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_source_that_named_a_file_of_this_machine_had_it_read() {
    let server = Double::unreachable().await;
    let folder = Folder::make();
    let secret = folder.write("list.txt", "192.0.2.1\n");
    let guard = format!("guards: [{{ name: g, deny: ip, file: '{secret}' }}]");
    server.say(None, &format!("{guard}\n{}", policies("api", "5/s")));
    let file = folder.write("tidegate.yaml", config(&server));
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stdout);
    let why = "a config source cannot refer to files";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[tokio::test]
async fn a_source_cannot_reveal_variables_of_the_process() {
    let server = Double::unreachable().await;
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
            .contains("a config source cannot use variables"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("a-secret-path"), "{}", ended.stderr);
}

#[tokio::test]
async fn validate_fetches_the_sources_and_reports_their_errors() {
    let server = Double::unreachable().await;
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
    let server = Double::unreachable().await;
    server.say(Some("\"0\""), &policies("api", &nth_rate(0)));
    let mut program = Program::start(&config(&server)).await;
    under_load(&mut program, "api", async |program, nth, rate| {
        let tag = format!("\"{nth}\"");
        server.say(Some(&tag), &policies("api", &rate));
        program.serves("central", &tag).await;
    })
    .await;
}
