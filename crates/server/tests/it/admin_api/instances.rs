use super::kit::{AdminServer, WritableServer, admin};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::{get, post};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_policy::calendar::ZoneData;
use tidegate_testkit::redis::{Acl, Server};
use tokio::time::timeout;

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the status of a server once its view of all instances matches `is_so`.
async fn once(server: &AdminServer, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let asked = async {
        loop {
            last = server.get("/status").await.json();
            if is_so(&last["instances"]) {
                return;
            }
        }
    };
    let asked = timeout(PATIENCE, asked).await;
    assert!(asked.is_ok(), "never reached; last: {last}");
    last
}

/// Returns the versions that the instances serve, with an empty text if unknown.
fn versions(instances: &Value) -> Vec<&str> {
    let all = instances["all"].as_array().unwrap();
    all.iter()
        .map(|it| it["version"].as_str().unwrap_or_default())
        .collect()
}

/// Returns true if there are this many instances, and all serve `version`.
fn all_serve(instances: &Value, count: usize, version: &str) -> bool {
    let versions = versions(instances);
    let is_it = |it: &&str| !it.is_empty() && version.starts_with(*it);
    versions.len() == count && versions.iter().all(is_it)
}

/// Returns the numbers of instances in the metrics: with the same version, another one, and an
/// unknown one.
async fn counted(server: &AdminServer) -> [Option<f64>; 3] {
    let page = get(server.address, "/metrics").await.body;
    let samples = samples(&page);
    ["same", "other", "unknown"].map(|word| {
        let name = format!("tidegate_instances{{configuration=\"{word}\"}}");
        samples.get(&name).copied()
    })
}

/// Waits until the metrics show these numbers.
async fn until_counted(server: &AdminServer, expected: [f64; 3]) {
    let expected = expected.map(Some);
    let mut last = [None; 3];
    let asked = async {
        while last != expected {
            last = counted(server).await;
        }
    };
    let asked = timeout(PATIENCE, asked).await;
    assert!(asked.is_ok(), "never {expected:?}, but {last:?}");
}

#[tokio::test]
async fn the_status_shows_that_a_change_reached_all_instances() {
    let writable = WritableServer::start().await;
    let one = &writable.server;
    let (two, three) = (writable.another().await, writable.another().await);
    let servers = [one, &two, &three];
    let before = one.get("/status").await.json()["version"].clone();
    for server in servers {
        let is_so = |it: &Value| all_serve(it, 3, before.as_str().unwrap());
        let status = once(server, is_so).await;
        assert_eq!(status["version"], before);
        assert_eq!(status["instances"]["versions_agree"], true, "{status}");
        let first = &status["instances"]["all"][0];
        assert_eq!(first["this"], true);
        assert_eq!(first["name"], status["instances"]["this"]);
        assert_eq!(first["program"], env!("CARGO_PKG_VERSION"));
        assert_eq!(first["time_zones"], ZoneData::current().version());
        assert_eq!(first["version"].as_str().unwrap().len(), 16);
        until_counted(server, [3.0, 0.0, 0.0]).await;
    }

    let policy = json!({ "name": "api", "limits": [{ "name": "all", "rate": "1/s" }] });
    let made = one.change("POST", "/policies", &policy).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let after = one.get("/status").await.json()["version"].clone();
    assert_ne!(after, before);
    for server in servers {
        let is_so = |it: &Value| all_serve(it, 3, after.as_str().unwrap());
        let status = once(server, is_so).await;
        assert_eq!(status["version"], after);
        assert_eq!(status["instances"]["versions_agree"], true, "{status}");
    }
    // `/status` shows the same, from its last read.
    let asked = async {
        loop {
            let status = get(two.address, "/status").await.json();
            if all_serve(&status["instances"], 3, after.as_str().unwrap()) {
                return status["instances"].clone();
            }
        }
    };
    let instances = timeout(PATIENCE, asked).await.unwrap();
    assert_eq!(instances["versions_agree"], true, "{instances}");
    assert!(instances["all"][1]["last_seen_ms"].as_u64().unwrap() < 15_000);
    assert!(instances["all"][1]["applied_ms"].is_u64());
}

#[tokio::test]
async fn an_instance_with_another_file_is_reported_as_differing() {
    let writable = WritableServer::start().await;
    let one = &writable.server;
    let other = writable.differing("burst 5", "burst 6").await;
    for server in [one, &other] {
        let status = once(server, |it| it["versions_agree"] == false).await;
        let instances = &status["instances"];
        let versions = versions(instances);
        assert_ne!(versions[0], versions[1]);
        assert!(status["version"].as_str().unwrap().starts_with(versions[0]));
        until_counted(server, [1.0, 1.0, 0.0]).await;
    }
    let whole = get(one.address, "/status").await.json();
    assert_eq!(whole["instances"]["versions_agree"], false, "{whole}");
    assert_eq!(
        whole["status"], "UP",
        "a change in progress is not a problem"
    );

    writable.agree();
    for server in [one, &other] {
        let is_so = |it: &Value| it["versions_agree"] == true && versions(it).len() == 2;
        once(server, is_so).await;
        until_counted(server, [2.0, 0.0, 0.0]).await;
    }
}

#[tokio::test]
async fn killed_instances_are_not_listed_and_old_versions_are() {
    let writable = WritableServer::start().await;
    let one = &writable.server;
    let (leaves, dies) = (writable.another().await, writable.another().await);
    // An older version registers its name only.
    let now = writable.redis.command(&["TIME"]).texts().remove(0);
    let enter = ["ZADD", "tg:instances", &now, "one-of-before"];
    assert_eq!(writable.redis.command(&enter).int(), 1);
    let status = once(one, |it| it["all"].as_array().unwrap().len() == 4).await;
    let all = status["instances"]["all"].as_array().unwrap();
    let before = all.iter().find(|it| it["name"] == "one-of-before").unwrap();
    assert_eq!(
        (
            &before["version"],
            &before["program"],
            &before["applied_ms"]
        ),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(
        before["last_seen_ms"].as_u64().unwrap() < 15_000,
        "{before}"
    );
    assert_eq!(status["instances"]["versions_agree"], true, "{status}");
    assert_eq!(status["instances"]["live"], 4);

    let name = leaves.get("/status").await.json()["instances"]["this"].clone();
    assert!(all.iter().any(|it| it["name"] == name), "{status}");
    leaves.process.signal("TERM").await;
    assert!(leaves.process.ended().await.status.success());
    // It deregistered itself, so no timeout was needed.
    let left = ["ZRANGE", "tg:instances", "0", "-1"];
    let left = writable.redis.command(&left).texts();
    assert!(
        !left.iter().any(|it| it.starts_with(name.as_str().unwrap())),
        "{left:?}"
    );
    once(one, |it| {
        it["all"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["name"] != name)
    })
    .await;
    drop(dies);
    let gone = |it: &Value| it["all"].as_array().unwrap().len() == 1;
    let status = once(one, gone).await;
    assert_eq!(status["instances"]["all"][0]["this"], true);
    until_counted(one, [1.0, 0.0, 0.0]).await;
}

/// The permissions of every Redis user in these tests.
const RULES: &str = "~tg:* -@all +evalsha +script|load +time +get +mget +set +del +ping +role +info \
                     +client|setname";

/// Starts a server with its buckets there.
async fn start_another(redis: &Server, folder: &Folder) -> AdminServer {
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{}', timeout: 10s }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/h }}] }}]
{}",
        redis.url(),
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    AdminServer::start(&file).await
}

/// Waits until it has logged this about the list of instances.
async fn tells(server: &mut AdminServer, told: &str) {
    // The kit may have read past it while it waited for the listeners.
    let process = &mut server.process;
    if !process.logged.iter().any(|line| line.contains(told)) {
        process.logs(told, ("key", "tg:instances")).await;
    }
}

/// A user created for a version that counted the instances, but did not compare what they serve.
#[tokio::test]
async fn incomparable_instances_were_reported_as_agreeing() {
    let rules = format!("{RULES} +zadd +zcard +zremrangebyscore +pexpire");
    let redis = Server::builder().acl(Acl::limiter(&rules)).start();
    let (folder, another) = (Folder::make(), Folder::make());
    let mut one = start_another(&redis, &folder).await;
    let _two = start_another(&redis, &another).await;
    let status = once(&one, |it| it["live"] == 2).await;
    let instances = &status["instances"];
    assert_eq!(instances["counted"], false, "{status}");
    assert_eq!(instances["versions_agree"], Value::Null, "{status}");
    assert_eq!(instances["all"], json!([]), "{status}");
    assert_eq!(counted(&one).await, [None; 3]);
    let whole = get(one.address, "/status").await.json();
    assert_eq!(whole["instances"], Value::Null, "{whole}");
    let told = "instances are counted but not compared: the Redis user lacks +zrange";
    tells(&mut one, told).await;
}

/// A user created for a version without the list of instances.
#[tokio::test]
async fn a_user_without_heartbeat_permission_still_decides() {
    let redis = Server::builder().acl(Acl::limiter(RULES)).start();
    let folder = Folder::make();
    let mut server = start_another(&redis, &folder).await;
    assert!(post(server.http, "{}").await.is_allowed());
    assert!(!post(server.http, "{}").await.is_allowed());
    let status = server.get("/status").await.json();
    let instances = &status["instances"];
    assert_eq!(
        (&instances["counted"], &instances["live"]),
        (&false.into(), &1.into()),
        "{status}"
    );
    assert_eq!(instances["versions_agree"], Value::Null);
    assert_eq!(status["store"]["status"], "UP", "{status}");
    let told = "heartbeat through Redis failed; instances do not see each other";
    tells(&mut server, told).await;
}

#[tokio::test]
async fn with_a_memory_store_no_other_instances_are_listed() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let status = server.get("/status").await.json();
    let expected = json!({
        "counted": false, "this": null, "live": 1, "versions_agree": null, "all": [],
    });
    assert_eq!(status["instances"], expected);
    assert_eq!(counted(&server).await, [None; 3]);
    let whole = get(server.address, "/status").await.json();
    assert_eq!(whole["instances"], Value::Null, "{whole}");
}
