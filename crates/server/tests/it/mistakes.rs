//! Mistakes in plans, lists and files: reported immediately, and no limit is lifted.

use crate::kit::folder::Folder;
use crate::kit::process::{Process, run, tidegate};
use crate::kit::{get, post};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_testkit::redis::Server as Redis;
use tokio::time::timeout;

const GOOD: &str = "
plans: { free: 1/h, pro: 100/h }
subjects:
  ann: { plan: free }
  bob: { plan: pro }
";

/// Returns a configuration with these sections, whose plans are loaded every `refresh`.
fn config(plans: &str, refresh: &str, more: &str) -> String {
    format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
{more}
plans: [{{ name: shop, file: '{plans}', refresh: {refresh} }}]
policies:
  - name: api
    limits:
      - {{ name: each, key: user, rate: {{ plan: shop, subject: user, default: unlimited }} }}
"
    )
}

/// A server as a process, and its addresses.
struct ServedProcess {
    process: Process,
    http: SocketAddr,
    admin: SocketAddr,
}

impl ServedProcess {
    async fn start(folder: &Folder, config: &str) -> Self {
        let file = folder.write("tidegate.yaml", config);
        let mut process = Process::start(tidegate(&["serve", "--config", &file]));
        let admin = process.address("admin").await;
        let http = process.opened("http");
        Self {
            process,
            http,
            admin,
        }
    }

    async fn allows(&self, user: &str) -> bool {
        let question = format!(r#"{{"ip": "192.0.2.1", "user": "{user}"}}"#);
        post(self.http, &question).await.is_allowed()
    }

    /// Returns the first entry of a part of `/status`.
    async fn part(&self, part: &str) -> Value {
        let status = get(self.admin, "/status").await.json();
        status[part][0].clone()
    }

    /// Waits until the first entry of a part of `/status` has an error with these words, or no
    /// error.
    async fn until_error(&self, part: &str, words: Option<&str>) -> Value {
        let mut last = Value::Null;
        let waiting = async {
            loop {
                last = self.part(part).await;
                match (last["error"].as_str(), words) {
                    (None, None) => return,
                    (Some(error), Some(words)) if error.contains(words) => return,
                    _ => tokio::task::yield_now().await,
                }
            }
        };
        let waited = timeout(Duration::from_mins(1), waiting).await;
        assert!(waited.is_ok(), "never {words:?}, but {last}");
        last
    }
}

#[tokio::test]
async fn a_subject_was_free_as_soon_as_its_plan_was_misspelt_in_a_live_file() {
    let folder = Folder::make();
    let plans = folder.write("plans.yaml", GOOD);
    let mut served = ServedProcess::start(&folder, &config(&plans, "100ms", "")).await;
    assert!(served.allows("ann").await);
    assert!(!served.allows("ann").await);

    folder.write("plans.yaml", GOOD.replace("plan: free", "plan: fre"));
    let logged = served
        .process
        .logs(
            "plans are invalid; using the last good plans",
            ("plans", "shop"),
        )
        .await;
    let expected =
        format!("{plans}: line 4: subject `ann`: unknown plan `fre`; did you mean `free`?");
    assert_eq!(logged["error"], expected.as_str());
    assert_eq!(logged["level"], "WARN");
    let part = served.until_error("plans", Some(&expected)).await;
    assert_eq!(part["status"], "STALE");
    assert!(!served.allows("ann").await, "keeps the last good plans");

    folder.write("plans.yaml", GOOD.replace("{ plan: free }", "unlimited"));
    let part = served.until_error("plans", None).await;
    assert_eq!(part["status"], "UP");
    assert!(served.allows("ann").await, "the corrected file counts");
    served
        .process
        .logs("loading plans works again", ("plans", "shop"))
        .await;
    let warnings = served.process.logged.iter();
    let warnings = warnings.filter(|it| it.contains("plans are invalid"));
    assert_eq!(warnings.count(), 1, "{:#?}", served.process.logged);
}

#[tokio::test]
async fn a_misspelt_plan_was_valid_and_served() {
    let folder = Folder::make();
    let wrong = GOOD.replace("plan: free", "plan: fre") + "  eve: { plan: po }\n";
    let plans = folder.write("plans.yaml", wrong);
    let file = folder.write("tidegate.yaml", config(&plans, "1s", ""));
    for command in [&["validate"][..], &["serve", "--config"]] {
        let arguments: Vec<&str> = command.iter().copied().chain([file.as_str()]).collect();
        let ended = run(tidegate(&arguments)).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        for words in [
            "shop",
            plans.as_str(),
            "line 4: subject `ann`: unknown plan `fre`; did you mean `free`?",
            "line 6: subject `eve`: unknown plan `po`; did you mean `pro`?",
        ] {
            assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        }
    }
    std::fs::remove_file(&plans).unwrap();
    let ended = run(tidegate(&["serve", "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot read"), "{}", ended.stderr);
}

#[tokio::test]
async fn unlimited_subjects_without_a_rate_are_counted() {
    let folder = Folder::make();
    let plans = folder.write(
        "plans.yaml",
        "plans: { free: 1/h }\nsubjects: { a: {}, b: { amount: 3 }, c: { plan: free } }",
    );
    let text = config(&plans, "1s", "");
    for (unset, is_warned) in [
        ("", true),
        (", unset: unlimited", true),
        (", unset: refuse", false),
        (", unset: 5/min", false),
    ] {
        let text = text.replace("refresh: 1s", &format!("refresh: 1s{unset}"));
        let file = folder.write("tidegate.yaml", text);
        let ended = run(tidegate(&["validate", &file])).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        let words = "plans `shop`: warning: 2 subjects have neither a plan nor a rate";
        assert_eq!(ended.stdout.contains(words), is_warned, "{}", ended.stdout);
        assert_eq!(ended.stdout.contains("1 warning"), is_warned);
    }
}

#[tokio::test]
async fn a_list_that_was_removed_failed_in_silence() {
    let folder = Folder::make();
    let plans = folder.write("plans.yaml", GOOD);
    let list = folder.write("out.txt", "eve\n");
    let guards = format!("guards: [{{ name: out, deny: user, file: '{list}', refresh: 100ms }}]");
    let mut served = ServedProcess::start(&folder, &config(&plans, "1s", &guards)).await;
    assert!(!served.allows("eve").await);
    std::fs::remove_file(&list).unwrap();
    let logged = served
        .process
        .logs(
            "guard list refresh failed; using the last good list",
            ("guard", "out"),
        )
        .await;
    let why = logged["error"].as_str().unwrap();
    assert!(why.contains(&list), "{logged}");
    served.until_error("lists", Some(why)).await;
    assert!(!served.allows("eve").await, "uses the last good list");
    folder.write("out.txt", "ann\n");
    served.until_error("lists", None).await;
    assert!(served.allows("eve").await);
    assert!(!served.allows("ann").await);
}

#[tokio::test]
async fn a_set_that_became_a_string_failed_in_silence() {
    let folder = Folder::make();
    let redis = Redis::start();
    let plans = folder.write("plans.yaml", GOOD);
    redis.command(&["SADD", "out", "eve"]);
    let set = format!("{{ set: out, url: '{}' }}", redis.url());
    let guards = format!("guards: [{{ name: out, deny: user, redis: {set}, refresh: 100ms }}]");
    let mut served = ServedProcess::start(&folder, &config(&plans, "1s", &guards)).await;
    assert!(!served.allows("eve").await);
    redis.command(&["SET", "out", "nonsense"]);
    served
        .process
        .logs(
            "guard list refresh failed; using the last good list",
            ("guard", "out"),
        )
        .await;
    let words = "the key out does not hold a set";
    served.until_error("lists", Some(words)).await;
    assert!(!served.allows("eve").await);
    redis.command(&["DEL", "out"]);
    redis.command(&["SADD", "out", "ann"]);
    served.until_error("lists", None).await;
    assert!(served.allows("eve").await);
}
