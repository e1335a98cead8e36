//! `tidegate validate` and `tidegate schema`.

use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use serde_json::Value;

const SOUND: &str = "
policies:
  - name: api
    limits:
      - { name: a, rate: 1/s }
      - { name: b, key: ip, rate: 1/s }
  - name: web
    limits:
      - { name: c, rate: 1/s }
";

#[tokio::test]
async fn a_valid_file_is_reported_as_valid() {
    let folder = Folder::make();
    let file = folder.write("sound.yaml", SOUND);
    let ended = run(tidegate(&["validate", &file])).await;
    let verdict = format!("{file} is valid: 2 policies, 3 limits");
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with(&verdict), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");

    let explained = run(tidegate(&["validate", "--explain", &file])).await;
    assert!(explained.stdout.starts_with(&verdict));
    assert!(explained.stdout.len() > ended.stdout.len());
}

#[tokio::test]
async fn the_cluster_cost_of_a_policy_is_reported() {
    let folder = Folder::make();
    let text = format!("store: {{ url: \"redis://:hunter2@a,b\" }}{SOUND}");
    let file = folder.write("cluster.yaml", text);
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    for said in [
        "Policy `api`: a request costs one round trip, in parallel to up to 2 groups",
        "`tag: policy`",
        "Policy `web`: a request costs one round trip to one group",
    ] {
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
    let explained = run(tidegate(&["validate", "--explain", &file])).await;
    assert_eq!(explained.stdout.matches("up to 2 groups").count(), 1);
    assert!(!explained.stdout.contains("hunter2"));
}

#[tokio::test]
async fn policies_that_a_route_joins_are_counted_once() {
    let folder = Folder::make();
    let text = format!(
        "routes: [{{ name: all, upstreams: 'http://127.0.0.1:9', policy: [api, web] }}]{SOUND}"
    );
    let file = folder.write("joined.yaml", text);
    let ended = run(tidegate(&["validate", &file])).await;
    let verdict = format!("{file} is valid: 2 policies, 3 limits");
    assert!(ended.stdout.starts_with(&verdict), "{}", ended.stdout);
}

#[tokio::test]
async fn all_validation_errors_are_reported_at_once() {
    let folder = Folder::make();
    let text = SOUND
        .replace("rate: 1/s", "rate: 1/x")
        .replace("name: c", "nme: c");
    let file = folder.write("bad.yaml", text);
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(2), ""));
    for line in [5, 6, 9] {
        assert!(
            ended.stderr.contains(&format!("{file}:{line}:")),
            "{}",
            ended.stderr
        );
    }
    assert!(ended.stderr.contains("`nme`"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let ended = run(tidegate(&["validate", "/nowhere.yaml"])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains("cannot read /nowhere.yaml: "),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn the_schema_is_json() {
    let ended = run(tidegate(&["schema"])).await;
    assert_eq!(ended.status.code(), Some(0));
    let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(schema.is_object());
    assert!(ended.stdout.lines().count() > 1, "indented for readers");
}

/// Regression: opening a named pipe waits for a writer, possibly forever.
#[tokio::test]
async fn validating_a_named_pipe_blocked() {
    let folder = Folder::make();
    let pipe = &folder.write("pipe", "");
    std::fs::remove_file(pipe).unwrap();
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    let why = "it is a named pipe, not a regular file";
    let ended = run(tidegate(&["validate", pipe])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains(why), "{}", ended.stderr);

    let text = format!(
        "store: {{ url: 'redis://a', redis: {{ password_file: {pipe} }} }}\n\
         guards: [{{ name: banned, deny: ip, file: {pipe} }}]{SOUND}"
    );
    let file = folder.write("named.yaml", text);
    let ended = run(tidegate(&["validate", &file])).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches(why).count(), 2, "{}", ended.stderr);
}

/// Returns a compiled time zone (RFC 9636) that is always an hour ahead of UTC.
fn compiled_zone() -> Vec<u8> {
    let counts: [u32; 6] = [0, 0, 0, 0, 1, 4];
    let mut data = b"TZif".to_vec();
    data.extend([0; 16]);
    data.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    data.extend(3_600_i32.to_be_bytes());
    data.extend([0, 0]);
    data.extend(b"ATL\0");
    data
}

#[tokio::test]
async fn the_data_of_time_zones_can_be_replaced() {
    let folder = Folder::make();
    let text = "
policies:
  - name: api
    limits: [{ name: a, rate: 1000/month, time_zone: Atlantis/Poseidon }]
";
    let file = folder.write("atlantis.yaml", text);
    let unknown = run(tidegate(&["validate", &file])).await;
    assert_eq!(unknown.status.code(), Some(2), "{}", unknown.stderr);
    let said = "no time zone is named `Atlantis/Poseidon`";
    assert!(unknown.stderr.contains(said), "{}", unknown.stderr);

    let zones = std::path::Path::new(&file).with_file_name("zones");
    std::fs::create_dir_all(zones.join("Atlantis")).unwrap();
    std::fs::write(zones.join("Atlantis/Poseidon"), compiled_zone()).unwrap();
    let data = zones.to_str().unwrap();
    let args = ["validate", "--explain", &file, "--zone-data", data];
    let known = run(tidegate(&args)).await;
    assert_eq!(known.status.code(), Some(0), "{}", known.stderr);
    let said = "1000 in each month of the calendar in Atlantis/Poseidon";
    assert!(known.stdout.contains(said), "{}", known.stdout);

    let wrong = run(tidegate(&["validate", &file, "--zone-data", "/nowhere"])).await;
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stderr);
    let said = "--zone-data: `/nowhere` has no data of time zones";
    assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
}
