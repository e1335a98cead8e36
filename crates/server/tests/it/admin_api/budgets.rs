use super::kit::{AdminServer, READ, admin};
use crate::kit::folder::Folder;
use crate::kit::process::{Process, ProcessEnd, run, tidegate};
use crate::kit::{Reply, get, post};
use serde_json::{Value, json};
use tidegate_testkit::redis::Server as RedisServer;

/// Returns tiers of an API in the store at `url`.
fn tiers(url: &str) -> String {
    format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{url}', timeout: 10s }}
policies:
  - name: api
    reserve: 60s
    limits:
      - name: tokens
        key: user
        unit: tokens
        algorithm: fixed-window
        bands: [{{ rate: 1000/d, label: day }}, {{ rate: 5000/4d, label: days }}]
      - {{ name: per-key, key: api-key, missing: skip, rate: 10/d }}
      - {{ name: all, rate: 100/d, mode: shadow }}
  - name: web
    limits:
      - {{ name: per-route, key: [user, route], missing: skip, rate: 5/d }}
{}",
        admin("")
    )
}

async fn budgets(server: &AdminServer, body: &Value) -> Reply {
    let call = server.call("POST", "/budgets").by(READ);
    call.json(&body.to_string()).send().await
}

/// Runs `tidegate budget` against the server.
async fn shown(server: &AdminServer, words: &[&str]) -> ProcessEnd {
    let url = format!("http://{}", server.address);
    let call = ["budget", "--admin", &url, "--token-env", "TOKEN"];
    let mut command = tidegate(&[&call, words].concat());
    command.env("TOKEN", READ);
    run(command).await
}

async fn reads_budgets(url: &str) {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", tiers(url));
    let server = AdminServer::start(&file).await;
    let ann = json!({ "key": { "user": "ann" } });
    let full = budgets(&server, &ann).await;
    assert_eq!(full.status, 200, "{}", full.body);
    let full = full.json();
    assert_eq!(full["limits"][0]["found"], false);
    assert_eq!(full["limits"][0]["bands"][1]["left"], 5_000);

    let question = json!({ "user": "ann", "cost": { "tokens": 812 } }).to_string();
    assert!(post(server.http, &question).await.is_allowed());
    let seen = budgets(&server, &ann).await.json();
    let tokens = &seen["limits"][0];
    assert_eq!(tokens["bucket"], "api/tokens/user:ann");
    assert_eq!(
        (&tokens["unit"], &tokens["mode"], &tokens["found"]),
        (&"tokens".into(), &"enforce".into(), &true.into())
    );
    let day = &tokens["bands"][0];
    assert_eq!(
        (&day["label"], &day["capacity"]),
        (&"day".into(), &1_000.into())
    );
    assert_eq!((&day["used"], &day["left"]), (&812.into(), &188.into()));
    assert_eq!(day["period_ms"], 86_400_000);
    let reset = day["reset_ms"].as_u64().unwrap();
    assert!((86_000_000..=86_400_000).contains(&reset), "{day}");
    assert!(day.get("overdrawn").is_none(), "{day}");
    let all = &seen["limits"][1];
    assert_eq!(
        (&all["limit"], &all["shared"], &all["mode"]),
        (&"all".into(), &true.into(), &"shadow".into())
    );
    assert_eq!(all["bands"][0]["used"], 1);
    assert!(all.get("unit").is_none(), "{all}");
    let skipped: Vec<String> = seen["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["limit"], it["missing"]))
        .collect();
    assert_eq!(
        skipped,
        ["\"per-key\" [\"api-key\"]", "\"per-route\" [\"route\"]"]
    );

    let web = json!({ "policy": "web", "key": { "user": "ann", "route": "r" } });
    let web = budgets(&server, &web).await.json();
    assert_eq!(web["limits"][0]["bucket"], "web/per-route/user:ann,route:r");
    assert_eq!(web["limits"].as_array().unwrap().len(), 1);

    let by_command = shown(&server, &["--key", "user=ann", "--json"]).await;
    assert_eq!(by_command.status.code(), Some(0), "{}", by_command.stderr);
    let mut by_command: Value = serde_json::from_str(&by_command.stdout).unwrap();
    let mut seen = seen;
    for report in [&mut by_command, &mut seen] {
        for limit in report["limits"].as_array_mut().unwrap() {
            for band in limit["bands"].as_array_mut().unwrap() {
                band["reset_ms"].take();
            }
        }
    }
    assert_eq!(by_command, seen);
}

#[tokio::test]
async fn budgets_are_read_in_memory() {
    reads_budgets("memory").await;
}

#[tokio::test]
async fn budgets_are_read_in_redis() {
    let redis = RedisServer::start();
    reads_budgets(&redis.url()).await;
}

#[tokio::test]
async fn people_see_the_budgets_of_a_running_server() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", tiers("memory"));
    let server = AdminServer::start(&file).await;
    let nothing = shown(&server, &["--key", "user=ann"]).await;
    assert_eq!(nothing.status.code(), Some(3), "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("nothing is stored"),
        "{}",
        nothing.stderr
    );
    let question = json!({ "user": "ann", "cost": { "tokens": 812 } }).to_string();
    assert!(post(server.http, &question).await.is_allowed());
    let ended = shown(&server, &["--key", "user=ann", "--policy", "api"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    for (line, words) in [
        (
            1,
            &[
                "api/tokens",
                "day (1000/d) tokens",
                "812 of 1,000",
                "#########.  81%",
                " 188 ",
                "23 h 59 min",
            ][..],
        ),
        (
            2,
            &[
                "days (5000/4d) tokens",
                "812 of 5,000",
                "##........  16%",
                "4,188",
            ],
        ),
        (3, &["api/all", "100/d", "1 of 100"]),
    ] {
        for word in words {
            assert!(lines[line].contains(word), "{word:?} in {}", ended.stdout);
        }
    }
    assert!(
        ended.stdout.contains("api/all: counts for all clients"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .ends_with("not shown:\n  api/per-key: it also needs api-key\n"),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn mistakes_of_the_command_are_explained() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", tiers("memory"));
    let server = AdminServer::start(&file).await;
    let unknown = shown(&server, &["--key", "user=ann", "--policy", "nope"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        unknown.stderr.contains("unknown policy `nope`"),
        "{}",
        unknown.stderr
    );
    let other = folder.write("token", "tga_of-nobody");
    let url = format!("http://{}", server.address);
    let words = [
        "budget",
        "--admin",
        &url,
        "--token-file",
        &other,
        "--key",
        "user=ann",
    ];
    let refused = run(tidegate(&words)).await;
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("another token"),
        "{}",
        refused.stderr
    );
    let from_memory = run(tidegate(&[
        "budget", "--config", &file, "--key", "user=ann",
    ]))
    .await;
    assert_eq!(from_memory.status.code(), Some(2));
    assert!(
        from_memory.stderr.contains("--admin http://"),
        "{}",
        from_memory.stderr
    );
}

/// The message was that the path does not exist, which is true, but no help.
#[tokio::test]
async fn a_server_without_an_admin_credential_was_a_path_that_does_not_exist() {
    let folder = Folder::make();
    let text = tiers("memory").replace(&admin(""), "");
    let file = folder.write("tidegate.yaml", text);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let url = |address| format!("http://{address}");
    let (http, api) = (
        process.address("http").await,
        process.address("admin").await,
    );
    let asked = async |url: &str| {
        let words = ["budget", "--admin", url, "--key", "user=ann"];
        let ended = run(tidegate(&words)).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        ended.stderr
    };
    let told = asked(&url(api)).await;
    for part in [
        "the admin API is disabled",
        "admin: { tokens: [..] }",
        "tidegate token",
    ] {
        assert!(told.contains(part), "{part:?} in {told}");
    }
    let told = asked(&url(http)).await;
    assert!(told.contains("is --admin the listener `admin`?"), "{told}");
    // Paths that are not below it are no matter of credentials.
    let elsewhere = get(api, "/administer").await;
    assert!(
        elsewhere.body.contains("there are /livez"),
        "{}",
        elsewhere.body
    );
}

#[tokio::test]
async fn a_secret_is_in_no_response_and_no_log() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", tiers("memory"));
    let server = AdminServer::start(&file).await;
    let question = json!({ "api_key": "hunter2" }).to_string();
    assert!(post(server.http, &question).await.is_allowed());
    let seen = budgets(&server, &json!({ "key": { "api-key": "hunter2" } })).await;
    assert!(!seen.body.contains("hunter2"), "{}", seen.body);
    let seen = seen.json();
    assert_eq!(seen["limits"][0]["bands"][0]["used"], 1, "{seen}");
    let wrong = budgets(&server, &json!({ "key": { "apikey": "hunter2" } })).await;
    assert_eq!(wrong.status, 422);
    assert!(!wrong.body.contains("hunter2"), "{}", wrong.body);
    server.process.signal("TERM").await;
    let ended = server.process.ended().await;
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

#[tokio::test]
async fn meaningless_budget_requests_are_rejected() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", tiers("memory"));
    let server = AdminServer::start(&file).await;
    for body in [
        json!({}),
        json!({ "key": {} }),
        json!({ "key": { "usr": "ann" } }),
        json!({ "key": { "user": "" } }),
        json!({ "key": { "ip": "nowhere" } }),
        json!({ "key": { "user": 1 } }),
        json!({ "key": { "user": "ann" }, "policy": "nope" }),
        json!({ "key": { "user": "ann" }, "more": 1 }),
    ] {
        let reply = budgets(&server, &body).await;
        assert_eq!(reply.status, 422, "{body}: {}", reply.body);
    }
    let nobody = server.call("POST", "/budgets");
    let reply = nobody.json(r#"{"key": {"user": "ann"}}"#).send().await;
    assert_eq!(reply.status, 401);
}
