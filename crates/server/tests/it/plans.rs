//! Rates from plans: serving, check, simulate and inspect.

use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use crate::kit::redis::RunningConfig;
use crate::kit::{Server, get, post, simulation};
use std::time::Duration;
use tidegate_testkit::redis::Server as Redis;
use tokio::time::timeout;

const PLANS: &str = r#"{
  "plans": { "free": { "amount": 2, "period": 3600 } },
  "groups": { "acme": { "plan": "free", "quota": { "amount": 3, "period": 86400 } } },
  "subjects": {
    "p1": { "group": "acme" }, "p2": { "group": "acme", "amount": 5 }, "p3": { "amount": 1 }
  }
}"#;

fn config(plans: &str, store: &str) -> String {
    format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
{store}
plans: [{{ name: events, file: '{plans}' }}]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        rate: {{ plan: events, subject: attr:project, default: refuse }}
        algorithm: fixed-window
      - name: per-workspace
        key: group
        missing: skip
        rate: {{ plan: events, subject: attr:project, of: group, default: unlimited }}
        algorithm: fixed-window
"
    )
}

fn question(project: &str) -> String {
    format!(r#"{{"attributes":{{"project":"{project}"}}}}"#)
}

#[tokio::test]
async fn a_server_decides_by_the_plans_in_its_file_from_the_first_request_on() {
    let folder = Folder::make();
    let file = folder.write("plans.json", PLANS);
    let server = Server::start(&config(&file, "")).await;
    let ask = async |project: &str| post(server.http, &question(project)).await.json();
    for (project, limit, allowed) in [
        ("p1", "per-project", true),
        ("p1", "per-project", true),
        ("p1", "per-project", false),
        ("p2", "per-workspace", true),
        ("p2", "per-workspace", false),
    ] {
        let answer = ask(project).await;
        assert_eq!(answer["allowed"], allowed, "{project}: {answer}");
        assert_eq!(
            answer["limit"]["name"]
                .as_str()
                .or(answer["limit"].as_str()),
            Some(limit),
            "{answer}"
        );
    }
    let unset = ask("p3").await;
    assert_eq!(unset["allowed"], true, "{unset}");
    let unknown = ask("stranger").await;
    assert_eq!(
        (&unknown["allowed"], &unknown["reason"]),
        (&false.into(), &"no-plan".into()),
        "{unknown}"
    );

    let page = get(server.admin, "/metrics").await;
    let text = page.body;
    let samples = samples(&text);
    let value = |name: &str| samples.get(name).copied();
    let looked_up = |outcome| {
        value(&format!(
            "tidegate_plan_lookups_total{{plan=\"events\",outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!(looked_up("rate"), Some(10.0), "{text}");
    assert_eq!(looked_up("unknown"), Some(1.0), "{text}");
    assert_eq!(looked_up("unset"), Some(1.0), "{text}");
    assert_eq!(
        value("tidegate_plan_subjects{plan=\"events\"}"),
        Some(3.0),
        "{text}"
    );
}

#[tokio::test]
async fn plans_are_validated_with_the_configuration() {
    let folder = Folder::make();
    let plans = folder.write("plans.json", PLANS);
    let file = folder.write("tidegate.yaml", config(&plans, ""));
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let said = "Plans `events`: subjects: 3, groups: 1, different rates: 3.";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    for (plans, said) in [
        (
            r#"{"plans": {"free": {"amount": "many"}}}"#,
            "plan `free`: `amount`: `many` is not an amount",
        ),
        (
            r#"{"subjects": {"p": "5/s burst 9"}}"#,
            "a window has no burst",
        ),
        ("", "it is empty"),
    ] {
        folder.write("plans.json", plans);
        let ended = run(tidegate(&["validate", &file])).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn a_simulation_uses_the_plans_of_a_file() {
    let folder = Folder::make();
    let file = folder.write("plans.json", PLANS);
    let line = |at: u64, project: &str| {
        format!("{{\"at_ms\":{at},\"attributes\":{{\"project\":\"{project}\"}}}}\n")
    };
    let trace: String = (0..3)
        .map(|nth| line(1_700_000_000_000 + nth, "p1"))
        .collect();
    let simulated = simulation::run(&config(&file, ""), trace.as_bytes());
    simulated.ended.unwrap();
    let allowed: Vec<bool> = simulated
        .out
        .lines()
        .map(|it| it.contains("\"allowed\":true"))
        .collect();
    assert_eq!(allowed, [true, true, false], "{}", simulated.out);
    assert!(simulated.err.contains("per-workspace"), "{}", simulated.err);
}

#[tokio::test]
async fn a_bucket_is_inspected_and_reset_by_the_rate_of_its_plan() {
    let redis = Redis::start();
    let folder = Folder::make();
    let plans = folder.write("plans.json", PLANS);
    let store = format!("store: {{ url: '{}' }}", redis.url());
    let operated = RunningConfig::by(config(&plans, &store));
    let limiter = operated.limiter().await;
    let wrong = limiter.load_plans(&tidegate::FilePlans).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    let attributes = [("project", "p2")];
    let request = tidegate::Request::new().attributes(&attributes).cost(2);
    assert!(limiter.check(&request).await.unwrap().is_allowed());
    for words in [
        vec!["inspect", "events/per-project/attr.project:p2"],
        vec![
            "inspect",
            "--limit",
            "per-project",
            "--key",
            "attr:project=p2",
        ],
    ] {
        let seen = operated.json(&words).await;
        let band = &seen["bands"][0];
        assert_eq!(
            (&band["capacity"], &band["remaining"]),
            (&5.into(), &3.into()),
            "{seen}"
        );
    }
    for words in [
        vec!["inspect", "events/per-workspace/group:acme"],
        vec!["inspect", "--limit", "per-workspace", "--key", "group=acme"],
        vec![
            "inspect",
            "--limit",
            "per-workspace",
            "--key",
            "attr:project=p1",
        ],
    ] {
        let seen = operated.json(&words).await;
        assert_eq!(
            seen["bucket"], "events/per-workspace/group:acme",
            "{words:?}"
        );
        let band = &seen["bands"][0];
        assert_eq!(
            (&band["capacity"], &band["remaining"]),
            (&3.into(), &1.into()),
            "{seen}"
        );
    }
    let ended = operated
        .run(&["reset", "events/per-project/attr.project:p2"])
        .await;
    assert!(
        ended.stdout.contains("is reset"),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
    let seen = operated
        .json(&["inspect", "events/per-project/attr.project:p2"])
        .await;
    assert_eq!(seen["bands"][0]["remaining"], 5, "{seen}");
}

/// Buckets without a rate in a plan, and the message of `inspect`.
const WITHOUT_RATE: [(&str, &str); 9] = [
    (
        "--limit per-project --key p1",
        "none: this subject is unlimited",
    ),
    (
        "events/per-project/attr.project:p1",
        "none: this subject is unlimited",
    ),
    (
        "--limit per-project --key p2",
        "none: the plan has no rate for this subject: requests are refused",
    ),
    (
        "--limit per-project --key p4",
        "none: the plan has no rate for this subject: requests are refused",
    ),
    (
        "--limit per-project --key nosuch",
        "none: the plan does not know this subject: requests are refused",
    ),
    (
        "--limit per-workspace --key group=acme",
        "none: this subject is unlimited",
    ),
    (
        "--limit per-workspace --key group=nosuch",
        "none: the plan does not know this subject: unlimited",
    ),
    (
        "events/per-key/api-key:#0123456789abcdef0123456789abcdef",
        "unknown: the plan looks it up by `api-key`, which the bucket's name does not show. Name \
         the bucket with --limit and --key api-key=…",
    ),
    (
        "--limit per-key --key 0123456789abcdef0123456789abcdef",
        "unknown: the plan looks it up by `api-key`, which the bucket's name does not show. Name \
         the bucket with --limit and --key api-key=…",
    ),
];

#[tokio::test]
async fn inspect_showed_an_invented_rate_for_a_plan_without_one() {
    const PLANS: &str = r#"{
      "plans": { "bare": {} },
      "subjects": {
        "p1": { "unlimited": true }, "p2": {}, "p3": { "amount": 7, "period": 60 }, "p4": { "plan": "bare" }
      },
      "groups": { "acme": { "quota": { "unlimited": true } } }
    }"#;
    let redis = Redis::start();
    let folder = Folder::make();
    let plans = folder.write("plans.json", PLANS);
    let store = format!("store: {{ url: '{}' }}", redis.url());
    let text = config(&plans, &store).replace("' }]", "', unset: refuse }]")
        + "      - { name: per-key, key: api-key, missing: skip, rate: { plan: events, subject: api-key, default: 9/min } }\n";
    let operated = RunningConfig::by(text);
    let inspect = async |words: &str| {
        let words: Vec<&str> = ["inspect"].into_iter().chain(words.split(' ')).collect();
        operated.json(&words).await
    };
    for (words, rate) in WITHOUT_RATE {
        let seen = inspect(words).await;
        assert_eq!(seen["rate"], rate, "{words}");
        assert_eq!(seen["bands"], serde_json::json!([]), "{words}");
    }
    for (words, capacity) in [
        ("--limit per-project --key p3", 7),
        ("--limit per-key --key api-key=hunter2", 9),
        ("events/per-key/api-key:hunter2", 9),
    ] {
        let seen = inspect(words).await;
        assert_eq!(seen["bands"][0]["capacity"], capacity, "{words}: {seen}");
        assert!(seen["rate"].is_null(), "{seen}");
    }
    std::fs::remove_file(&plans).unwrap();
    let seen = inspect("--limit per-project --key p3").await;
    let rate = seen["rate"].as_str().unwrap();
    assert!(
        rate.starts_with("unknown: the plans could not be loaded: "),
        "{rate}"
    );
    assert_eq!(seen["bands"], serde_json::json!([]));
}

#[tokio::test]
async fn inspect_called_a_bucket_without_a_rate_full() {
    const PLANS: &str = r#"{ "plans": { "bare": {} }, "subjects": { "p1": { "plan": "bare" } } }"#;
    let redis = Redis::start();
    let folder = Folder::make();
    let plans = folder.write("plans.json", PLANS);
    let store = format!("store: {{ url: '{}' }}", redis.url());
    let text = config(&plans, &store);
    let unlimited = text.replace("default: refuse", "default: unlimited");
    let refusing = text.replace("' }]", "', unset: refuse }]");
    for (text, key, rate) in [
        (&text, "p1", "none: this subject is unlimited"),
        (
            &refusing,
            "p1",
            "none: the plan has no rate for this subject: requests are refused",
        ),
        (
            &text,
            "p2",
            "none: the plan does not know this subject: requests are refused",
        ),
        (
            &unlimited,
            "p2",
            "none: the plan does not know this subject: unlimited",
        ),
    ] {
        let operated = RunningConfig::by(text.clone());
        let ended = operated
            .run(&["inspect", "--limit", "per-project", "--key", key])
            .await;
        assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
        assert!(
            ended.stdout.contains(&format!("\nrate {rate}\n")),
            "{}",
            ended.stdout
        );
        assert!(!ended.stdout.contains("remaining"), "{}", ended.stdout);
        assert!(ended.stderr.contains(rate), "{}", ended.stderr);
        assert!(!ended.stderr.contains("full"), "{}", ended.stderr);
    }
}

/// The number of failures does not show if the last read failed.
#[tokio::test]
async fn stale_lists_and_plans_are_reported_while_stale() {
    let folder = Folder::make();
    let plans = folder.write("plans.json", PLANS);
    let redis = Redis::start();
    let set = format!("{{ set: out, url: '{}' }}", redis.url());
    let guards = format!("guards: [{{ name: out, deny: ip, redis: {set}, refresh: 100ms }}]");
    let text = config(&plans, &guards).replace("' }]", "', refresh: 100ms }]");
    let server = Server::start(&text).await;
    let until_stale = async |expected: [f64; 2]| {
        let mut last = [None; 2];
        let asked = async {
            while last != expected.map(Some) {
                let page = samples(&get(server.admin, "/metrics").await.body);
                last = [
                    "tidegate_list_stale{guard=\"out\"}",
                    "tidegate_plans_stale{plan=\"events\"}",
                ]
                .map(|name| page.get(name).copied());
            }
        };
        let asked = timeout(Duration::from_mins(1), asked).await;
        assert!(asked.is_ok(), "never {expected:?}, but {last:?}");
    };
    until_stale([0.0, 0.0]).await;
    redis.kill9();
    until_stale([1.0, 0.0]).await;
    folder.write("plans.json", "{");
    until_stale([1.0, 1.0]).await;
    redis.restart();
    folder.write("plans.json", PLANS);
    until_stale([0.0, 0.0]).await;
}
