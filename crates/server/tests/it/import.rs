//! `tidegate import`, and `--envoy-config` of the commands that read a config.

use crate::kit::folder::Folder;
use crate::kit::post;
use crate::kit::process::{Process, run, tidegate};
use std::fs;
use std::path::Path;

const EDGE: &str = "\
domain: edge
descriptors:
  - key: user
    rate_limit: { name: per_user, unit: year, requests_per_unit: 2 }
  - key: user
    value: ann
    detailed_metric: true
    rate_limit: { name: ann, unlimited: true }
";

const WRONG: &str = "\
domain: edge
descriptors:
  - key: user
    ratelimit: { unit: day }
  - key: plan
    rate_limit: { unit: fortnight }
";

const LIMITADOR: &str = "\
- namespace: shop
  max_value: 5
  seconds: 60
  conditions: [\"descriptors[0]['req.method'] == 'POST'\"]
  variables: [\"descriptors[0].user_id\"]
";

const PLUGIN: &str = "\
spec:
  keeperPassword: hunter2
  ratelimitData: |
    { \"limits\": [{ \"rules\": [{ \"urlpathpattern\": \"/pay$\" },], \"limit\": 1 }] }
";

const RULES: &str = r#"[{ "id": "all", "ruleSetId": "api", "scope": "GLOBAL", "bands": [{ "windowSeconds": 3600, "capacity": 1 }] }]"#;

const POLICIES: &str =
    r#"{ "items": [{ "id": "1", "name": "api", "requestsPerSecond": 1, "burstSize": 1 }] }"#;

const ANYWHERE: [&str; 6] = [
    "--http",
    "127.0.0.1:0",
    "--grpc",
    "127.0.0.1:0",
    "--admin",
    "127.0.0.1:0",
];

/// Returns the folder of a file.
pub(crate) fn parent(file: &str) -> String {
    let parent = Path::new(file).parent().unwrap();
    parent.to_str().unwrap().to_owned()
}

/// Sends a check request of this user; returns the response.
pub(crate) async fn ask(http: std::net::SocketAddr, user: &str) -> bool {
    let entries = format!(r#"[{{"key":"user","value":"{user}"}}]"#);
    let question = format!(r#"{{"policy":"edge","descriptors":[{{"entries":{entries}}}]}}"#);
    post(http, &question).await.is_allowed()
}

#[tokio::test]
async fn a_translation_goes_to_stdout_and_its_notes_to_stderr() {
    let folder = Folder::make();
    let directory = parent(&folder.write("edge.yaml", EDGE));
    folder.write("notes.txt", "not a configuration");
    folder.write(".hidden.yaml", "{");
    let ended = run(tidegate(&["import", "envoy", &directory])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("rate: 2/365d"), "{}", ended.stdout);
    assert!(ended.stdout.contains("rate: unlimited"), "{}", ended.stdout);
    for said in [
        "edge.yaml:7: note: `detailed_metric` is skipped",
        "notes.txt is skipped",
        "edge.yaml:1: note: limits of one call are decided together",
    ] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("hidden"), "{}", ended.stderr);

    let printed = folder.write("printed.yaml", &ended.stdout);
    let valid = run(tidegate(&["validate", &printed])).await;
    assert_eq!(valid.status.code(), Some(0), "{}", valid.stderr);
    let verdict = format!("{printed} is valid: 1 policy, 2 limits, 1 warning\n");
    assert!(valid.stdout.starts_with(&verdict), "{}", valid.stdout);
    let warning = "`per_user` counts for longer than an hour in memory";
    assert!(valid.stdout.contains(warning), "{}", valid.stdout);
}

#[tokio::test]
async fn limits_configured_to_count_separately_do() {
    let folder = Folder::make();
    let file = folder.write("edge.yaml", EDGE);
    let ended = run(tidegate(&["import", "envoy", &file, "--evaluate", "each"])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("evaluate: each"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("together"), "{}", ended.stderr);
}

#[tokio::test]
async fn refused_calls_are_charged_their_stated_hits_unless_disabled() {
    let folder = Folder::make();
    let envoy = folder.write("edge.yaml", EDGE);
    let limits = "[{ namespace: shop, max_value: 5, seconds: 60, conditions: [], variables: [] }]";
    let limitador = folder.write("limits.yaml", limits);
    for (limiter, file) in [("envoy", envoy), ("limitador", limitador)] {
        let import = ["import", limiter, &file];
        let by_default = run(tidegate(&import)).await;
        assert_eq!(by_default.status.code(), Some(0), "{}", by_default.stderr);
        assert!(by_default.stdout.contains("    charge: even-if-refused\n"));
        let switched_off = [&import[..], &["--charge", "if-fits"]].concat();
        let switched_off = run(tidegate(&switched_off)).await;
        let expected = by_default
            .stdout
            .replace("    charge: even-if-refused\n", "");
        assert_eq!(switched_off.stdout, expected);
    }
}

#[tokio::test]
async fn all_errors_are_reported_at_once_and_nothing_is_printed() {
    let folder = Folder::make();
    let file = folder.write("edge.yaml", WRONG);
    let directory = parent(&file);
    let second = folder.write("second.yml", "domain: edge");
    for arguments in [
        &["import", "envoy", &directory][..],
        &["validate", "--envoy-config", &directory],
        &["serve", "--envoy-config", &directory],
        &["--envoy-config", &directory],
        &["simulate", "--trace", "-", "--envoy-config", &directory],
    ] {
        let ended = run(tidegate(arguments)).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
        for said in [
            format!("{file}:4:5: config error, unknown key 'ratelimit'"),
            format!("{file}:6:25: invalid rate limit unit 'fortnight'"),
            format!("{second}:1:9: duplicate domain 'edge' in config file"),
            format!("{directory}: 3 errors"),
        ] {
            assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        }
    }
    let merged = run(tidegate(&[
        "import",
        "envoy",
        &directory,
        "--merge-domains",
    ]))
    .await;
    assert!(merged.stderr.contains("2 errors"), "{}", merged.stderr);
}

#[tokio::test]
async fn an_empty_folder_is_no_configuration() {
    let folder = Folder::make();
    let directory = parent(&folder.write("README", ""));
    let ended = run(tidegate(&["serve", "--envoy-config", &directory])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("holds no file"), "{}", ended.stderr);

    let config = Path::new(&directory).join("config");
    fs::create_dir(&config).unwrap();
    let ended = run(tidegate(&["import", "envoy", &directory])).await;
    let hint = format!("did you mean {}?", config.display());
    assert!(ended.stderr.contains(&hint), "{}", ended.stderr);

    let ended = run(tidegate(&["import", "envoy", "/nowhere"])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains("cannot read /nowhere"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn flags_of_a_folder_need_a_folder() {
    for flag in [
        &["--merge-domains"][..],
        &["--evaluate", "each"],
        &["--charge", "if-fits"],
    ] {
        let arguments = [&["serve"], flag].concat();
        let ended = run(tidegate(&arguments)).await;
        assert_eq!(ended.status.code(), Some(2));
        assert!(ended.stderr.contains("--envoy-config"), "{}", ended.stderr);
    }
    let ended = run(tidegate(&["validate"])).await;
    assert_eq!(ended.status.code(), Some(2));
}

#[tokio::test]
async fn a_file_of_limitador_is_translated_wholly_or_not_at_all() {
    let folder = Folder::make();
    let file = folder.write("limits.yaml", LIMITADOR);
    let ended = run(tidegate(&["import", "limitador", &file])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("rate: 5/60s"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");

    let foreign = LIMITADOR.replace("==", "!=");
    let file = folder.write("limits.yaml", format!("{LIMITADOR}{foreign}"));
    let ended = run(tidegate(&["import", "limitador", &file])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(ended.stdout, "");
    let said = format!("{file}:9:16: this expression is not supported");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

#[tokio::test]
async fn documents_of_other_systems_are_translated_to_valid_configs() {
    let folder = Folder::make();
    let plugin = folder.write("middleware.yaml", PLUGIN);
    let rules = folder.write("rules.json", RULES);
    let policies = folder.write("rate-limits.json", POLICIES);
    let variables = folder.write("collector.env", "REDIS_URL=localhost:6379\n");
    for (system, file, said) in [
        ("traefik-plugin", &plugin, "rate: 1/s"),
        ("fluxgate", &rules, "bands: [{ rate: 1/h, label: default }]"),
        ("gateway", &policies, "rate: 1/s burst 1"),
        ("collector", &variables, "profile: collector"),
    ] {
        let ended = run(tidegate(&["import", system, file])).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
        assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"));
        // A collector's plans are in a missing file.
        let plans = format!("file: {}", folder.write("plans.yaml", "plans: {}"));
        let text = ended.stdout.replace("file: plans.yaml", &plans);
        let translated = folder.write("tidegate.yaml", text);
        let ended = run(tidegate(&["validate", &translated])).await;
        assert_eq!(ended.status.code(), Some(0), "{system}: {}", ended.stderr);
    }
    let ended = run(tidegate(&["import", "traefik-plugin", &plugin])).await;
    let said = format!("{plugin}:4: warning: trailing comma before a closing bracket");
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
}

#[tokio::test]
async fn all_untranslatable_items_are_reported_and_nothing_is_printed() {
    let folder = Folder::make();
    let wrong = PLUGIN
        .replace("\"limit\": 1", "\"limit\": 0")
        .replace("/pay$", "pay");
    let file = folder.write("middleware.yaml", wrong);
    let ended = run(tidegate(&["import", "traefik-plugin", &file])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("2 errors"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

#[tokio::test]
async fn envoyproxy_ratelimit_files_are_served_and_reloaded() {
    let folder = Folder::make();
    let directory = parent(&folder.write("edge.yaml", EDGE));
    let arguments = [&["serve", "--envoy-config", &directory], &ANYWHERE[..]].concat();
    let mut process = Process::start(tidegate(&arguments));
    let http = process.address("http").await;
    process.address("grpc").await;
    let mut passed = Vec::new();
    for user in ["bob", "bob", "bob", "eve", "ann", "ann", "ann"] {
        passed.push(ask(http, user).await);
    }
    assert_eq!(passed, [true, true, false, true, true, true, true]);

    folder.write("edge.yaml", WRONG);
    process.signal("HUP").await;
    let refused = "config reload failed; keeping the previous config";
    process.logs(refused, ("configuration", &directory)).await;
    for place in ["edge.yaml:4:5:", "edge.yaml:6:25:"] {
        let told = process.logged.iter().any(|line| line.contains(place));
        assert!(told, "{place} {:#?}", process.logged);
    }
    assert!(!ask(http, "bob").await);

    folder.write("edge.yaml", EDGE.replace("per_user", "anew"));
    process.signal("HUP").await;
    let reloaded = "config reloaded";
    process.logs(reloaded, ("limits_added", "edge/anew")).await;
    assert!(ask(http, "bob").await);
    process.signal("TERM").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
}

#[tokio::test]
async fn envoyproxy_ratelimit_files_are_served_next_to_a_config() {
    let (own, folder) = (Folder::make(), Folder::make());
    let directory = parent(&folder.write("edge.yaml", EDGE));
    let text = "policies: [{ name: api, limits: [{ name: all, rate: 1/day }] }]\n";
    let file = own.write("tidegate.yaml", text);
    let both = ["--config", &file, "--envoy-config", &directory];
    let arguments = [&["serve"], &both[..], &ANYWHERE[..]].concat();
    let mut process = Process::start(tidegate(&arguments));
    let http = process.address("http").await;
    assert!(ask(http, "bob").await);
    // Check requests without a policy use the file's first one.
    assert!(post(http, "{}").await.is_allowed());
    assert!(!post(http, "{}").await.is_allowed());

    own.write("tidegate.yaml", text.replace("api", "edge"));
    process.signal("HUP").await;
    let name = format!("{file} and {directory}");
    let refused = "config reload failed; keeping the previous config";
    process.logs(refused, ("configuration", &name)).await;
    let clash = |line: &&String| line.contains("two policies are named `edge`");
    assert!(
        process.logged.iter().any(|line| clash(&line)),
        "{:#?}",
        process.logged
    );

    let valid = run(tidegate(&["validate", &file, "--envoy-config", &directory])).await;
    assert_eq!(valid.status.code(), Some(2), "{}", valid.stdout);
    own.write("tidegate.yaml", "store: { timeout: 5ms }");
    let valid = run(tidegate(&["validate", &file, "--envoy-config", &directory])).await;
    let verdict = format!("{name} is valid: 1 policy, 2 limits");
    assert!(
        valid.stdout.starts_with(&verdict),
        "{}{}",
        valid.stdout,
        valid.stderr
    );
}

#[tokio::test]
async fn a_trace_is_simulated_under_envoyproxy_ratelimit_files() {
    let folder = Folder::make();
    let directory = parent(&folder.write("edge.yaml", EDGE));
    let line = r#"{"at_ms": 1700000000000, "policy": "edge", "descriptors": [{"entries": [{"key": "user", "value": "bob"}]}]}"#;
    let trace = folder.write("trace.jsonl", [line; 3].join("\n"));
    let arguments = ["simulate", "--envoy-config", &directory, "--trace", &trace];
    let ended = run(tidegate(&arguments)).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let decided = ended.stdout.lines();
    let passed: Vec<bool> = decided
        .map(|it| it.starts_with("{\"allowed\":true"))
        .collect();
    assert_eq!(passed, [true, true, false], "{}", ended.stdout);
}
