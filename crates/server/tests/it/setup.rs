//! `tidegate init`, and its output in use.

use crate::kit::folder::Folder;
use crate::kit::post;
use crate::kit::process::{Process, ProcessEnd, run, tidegate};
use crate::kit::terminal;
use std::fs;
use std::path::Path;
use tidegate_testkit::redis::Server as RedisServer;

async fn init(file: &str, flags: &[&str]) -> ProcessEnd {
    let mut all = vec!["init", "--output", file];
    all.extend(flags);
    run(tidegate(&all)).await
}

/// Serves a file on free ports; returns the address of the HTTP API.
async fn serve(file: &str, flags: &[&str]) -> (Process, String) {
    let any = "127.0.0.1:0";
    let mut all = vec!["serve", file, "--http", any, "--admin", any];
    all.extend(flags);
    let mut process = Process::start(tidegate(&all));
    process.address("admin").await;
    let http = process.opened("http");
    (process, format!("http://{http}"))
}

async fn assert_valid(file: &str) {
    let ended = run(tidegate(&["validate", file])).await;
    let verdict = format!("{file} is valid: 1 policy, 1 limit\n");
    assert!(
        ended.stdout.starts_with(&verdict),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
}

#[tokio::test]
async fn init_writes_a_valid_config_that_refuses_the_third_request() {
    let redis = RedisServer::start();
    let store = redis.url();
    let folder = Folder::make();
    let cases: [(&[&str], &[&str], &[&str]); 7] = [
        (&[], &[], &["--ip=192.0.2.1"]),
        (&["--proxy=nginx", "--key=user"], &[], &["--user=ann"]),
        (
            &["--proxy=caddy", "--key=api-key"],
            &[],
            &["--api-key-file=KEY"],
        ),
        (
            &["--run=gateway"],
            &["--gateway=127.0.0.1:0"],
            &["--ip=192.0.2.1"],
        ),
        (&["--run=library"], &[], &["--ip=192.0.2.1"]),
        (
            &["--run=kubernetes", "--proxy=traefik"],
            &[],
            &["--ip=192.0.2.1"],
        ),
        (&["--store", &store], &[], &["--ip=192.0.2.1"]),
    ];
    let key = folder.write("key", "hunter2");
    for (nth, (flags, serving, checking)) in cases.into_iter().enumerate() {
        let file = folder
            .write("any", "")
            .replace("/any", &format!("/{nth}.yaml"));
        let flags = [flags, &["--limit", "2/h"]].concat();
        let written = init(&file, &flags).await;
        assert_eq!(
            written.status.code(),
            Some(0),
            "{flags:?} {}",
            written.stderr
        );
        assert!(
            written.stdout.starts_with(&format!("wrote {file}\n")),
            "{}",
            written.stdout
        );
        assert_valid(&file).await;
        // A busy machine may need longer than the timeout of a decision.
        let text = fs::read_to_string(&file).unwrap();
        let patient = format!("store: {{ url: '{store}', timeout: 10s }}");
        fs::write(&file, text.replace(&format!("store: {store}"), &patient)).unwrap();

        let (process, url) = serve(&file, serving).await;
        let mut check = vec!["check", "--count=3", "--url", &url];
        let checking: Vec<String> = checking.iter().map(|it| it.replace("KEY", &key)).collect();
        check.extend(checking.iter().map(String::as_str));
        let checked = run(tidegate(&check)).await;
        assert_eq!(
            checked.status.code(),
            Some(4),
            "{flags:?} {}",
            checked.stderr
        );
        assert!(
            checked.stdout.ends_with("\n2 allowed, 1 refused\n"),
            "{}",
            checked.stdout
        );
        process.signal("TERM").await;
    }
}

#[tokio::test]
async fn the_file_for_envoy_limits_by_its_descriptor() {
    let folder = Folder::make();
    let file = folder.write("any", "").replace("/any", "/envoy.yaml");
    let written = init(&file, &["--proxy=envoy", "--limit=1/h"]).await;
    assert_eq!(written.status.code(), Some(0), "{}", written.stderr);
    let (_process, url) = serve(&file, &["--grpc=127.0.0.1:0"]).await;
    let address = url.replace("http://", "").parse().unwrap();
    let question =
        r#"{"descriptors": [{"entries": [{"key": "remote_address", "value": "192.0.2.1"}]}]}"#;
    assert!(post(address, question).await.is_allowed());
    assert!(!post(address, question).await.is_allowed());
}

#[tokio::test]
async fn a_file_is_replaced_only_with_force() {
    let folder = Folder::make();
    let file = folder.write("mine.yaml", "mine");
    let ended = init(&file, &[]).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains(&format!("{file} exists")),
        "{}",
        ended.stderr
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let ended = init(&file, &["--limit", "often", "--force"]).await;
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let ended = init(&file, &["--force"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("rate: 100/min"));
    let ended = init("/nowhere/a.yaml", &[]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("cannot write /nowhere/a.yaml"),
        "{}",
        ended.stderr
    );
}

#[test]
fn init_prompts_for_missing_flags_at_a_terminal() {
    let folder = Folder::make();
    let file = folder.write("any", "").replace("/any", "/asked.yaml");
    let arguments = ["init", "--output", &file, "--key", "user"];
    // Integration, proxy (once invalid), store, rate.
    let shown = terminal::run(
        &arguments,
        &[("NO_COLOR", "1")],
        "\napache\nNginx\n\n5/min\n",
    );
    assert_eq!(shown.status.code(), Some(0), "{}", shown.text);
    for part in [
        "Where does Tidegate run?\n  service     Next to a proxy",
        "`apache` is not one of none, nginx, traefik, caddy, haproxy, envoy\n",
        "Rate, such as 10/s burst 50 [100/min]: ",
        "location = /_tidegate {",
        "Let the proxy pass X-User-Id",
    ] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
    assert!(!shown.text.contains("count by?"), "{}", shown.text);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("key: user\n        rate: 5/min\n"), "{text}");

    let yes = folder.write("any", "").replace("/any", "/yes.yaml");
    let shown = terminal::run(&["init", "--output", &yes, "--yes"], &[], "");
    assert_eq!(shown.status.code(), Some(0), "{}", shown.text);
    assert!(!shown.text.contains('?'), "{}", shown.text);
}

/// Returns the lines of code without indentation, comments and list marks: an example may nest them deeper.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let code = line.split(" # ").next().unwrap_or_default();
        code.trim().trim_start_matches("- ").to_owned()
    });
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

#[test]
fn init_prints_the_proxy_settings_of_the_tested_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let snippets = root.join("crates/server/src/commands/init/snippets");
    let pairs = [
        ("nginx.conf", "examples/nginx/nginx.conf"),
        ("ingress-nginx.yaml", "deploy/kubernetes/ingress-nginx.yaml"),
        ("traefik.yml", "examples/traefik-forward-auth/dynamic.yml"),
        ("traefik-kubernetes.yaml", "deploy/kubernetes/traefik.yaml"),
        ("Caddyfile", "examples/caddy/Caddyfile.short"),
        ("haproxy.cfg", "examples/haproxy/haproxy.cfg"),
        ("envoy.yaml", "examples/envoy/envoy.yaml"),
    ];
    assert_eq!(fs::read_dir(&snippets).unwrap().count(), pairs.len());
    for (snippet, example) in pairs {
        let example = lines(&fs::read_to_string(root.join(example)).unwrap());
        let text = fs::read_to_string(snippets.join(snippet)).unwrap();
        for part in text.split("\n\n").map(lines) {
            assert!(!part.is_empty(), "{snippet}");
            let found = example.windows(part.len()).any(|window| window == part);
            assert!(found, "{snippet}: {part:#?} is not in {example:#?}");
        }
    }
}
