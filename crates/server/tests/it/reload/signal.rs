//! SIGHUP and the log.

use super::kit::{LISTEN, Upstream, answered_by, one_route, reloads};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::get;
use crate::kit::process::{Process, tidegate};
use std::net::SocketAddr;

const RELOADED: &str = "config reloaded";
const REFUSED: &str = "config reload failed; keeping the previous config";
const POSTPONED: &str = "settings changed that take effect after a restart";

/// Returns the numbers of applied and rejected reloads.
async fn counted(admin: SocketAddr) -> [Option<f64>; 2] {
    reloads(&samples(&get(admin, "/metrics").await.body))
}

#[tokio::test]
async fn sighup_reloads_the_file_and_reports_an_invalid_one() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let folder = Folder::make();
    let (config_a, config_b) = (one_route("a", &a), one_route("b", &b));
    let file = folder.write("tidegate.yaml", format!("{LISTEN}\n{config_a}"));
    let mut process = Process::start(tidegate(&["serve", "--no-watch", "--config", &file]));
    let gateway = process.address("gateway").await;
    let admin = process.address("admin").await;
    assert_eq!(answered_by(&get(gateway, "/").await), "a");

    let renamed = config_b.replace("name: all", "name: everything");
    folder.write("tidegate.yaml", format!("{LISTEN}\n{renamed}"));
    process.signal("HUP").await;
    let line = process.logs(RELOADED, ("routes_added", "everything")).await;
    assert_eq!(line["routes_removed"], "all", "{line}");
    assert_eq!(line["limits_added"], "api/limit-b", "{line}");
    assert_eq!(line["limits_removed"], "api/limit-a", "{line}");
    assert!(line["policies_added"].is_null(), "{line}");
    assert_eq!(answered_by(&get(gateway, "/").await), "b");

    let bad = config_a
        .replace("1000000/s", "fast")
        .replace("name: all", "nam: all");
    folder.write("tidegate.yaml", format!("{LISTEN}\n{bad}"));
    process.signal("HUP").await;
    process.logs(REFUSED, ("level", "ERROR")).await;
    for line in [2, 3] {
        let place = format!("{file}:{line}:");
        let told = process.logged.iter().any(|line| line.contains(&place));
        assert!(told, "{place} {:#?}", process.logged);
    }
    assert_eq!(answered_by(&get(gateway, "/").await), "b");
    assert_eq!(counted(admin).await, [Some(1.0), Some(1.0)]);

    folder.write("tidegate.yaml", format!("{LISTEN}\n{config_a}"));
    process.signal("HUP").await;
    process.logs(RELOADED, ("routes_added", "all")).await;
    assert_eq!(answered_by(&get(gateway, "/").await), "a");
    process.signal("TERM").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
}

#[tokio::test]
async fn changes_that_need_a_restart_are_named_and_others_apply() {
    let a = Upstream::start("a").await;
    let folder = Folder::make();
    let routeless = |listen: &str, rate: &str| {
        format!("{listen}\npolicies: [{{ name: api, limits: [{{ name: all, rate: {rate} }}] }}]")
    };
    let listen = "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }";
    let file = folder.write("tidegate.yaml", routeless(listen, "1/h"));
    let mut process = Process::start(tidegate(&["serve", "--no-watch", "--config", &file]));
    let http = process.address("http").await;
    let admin = process.address("admin").await;

    let moved = "listen: { http: '127.0.0.2:0', admin: '127.0.0.1:0' }\nstore: { max_keys: 5000 }";
    folder.write("tidegate.yaml", routeless(moved, "3/h burst 7"));
    process.signal("HUP").await;
    let settings = ("settings", "listen.http, store.max_keys");
    process.logs(POSTPONED, settings).await;
    let reply = crate::kit::post(http, "{}").await;
    assert_eq!(reply.json()["band"], "3/h burst 7", "{}", reply.body);

    folder.write("tidegate.yaml", format!("{LISTEN}\n{}", one_route("a", &a)));
    process.signal("HUP").await;
    process
        .logs(POSTPONED, ("settings", "listen.gateway"))
        .await;
    let closed = "routes were added; the gateway opens after a restart";
    process.logs(closed, ("level", "WARN")).await;
    assert_eq!(counted(admin).await, [Some(2.0), Some(0.0)]);
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_reload() {
    let flags = ["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut process = Process::start(tidegate(&flags));
    let admin = process.address("admin").await;
    process.signal("HUP").await;
    let nothing = "nothing to reload: started without --config FILE";
    process.logs(nothing, ("signal", "SIGHUP")).await;
    assert_eq!(get(admin, "/readyz").await.status, 200);
    assert_eq!(counted(admin).await, [Some(0.0), Some(0.0)]);
}

#[tokio::test]
async fn a_guard_added_by_a_reload_started_with_an_empty_list() {
    let redis = tidegate_testkit::redis::Server::start();
    redis.command(&["SADD", "Listed", "192.0.2.1"]).done();
    let config = |guards: &str, limit: &str| {
        format!(
            "{LISTEN}\nstore: {{ url: '{}', timeout: 5s }}\nguards: [{guards}]
policies: [{{ name: api, limits: [{{ name: {limit}, rate: 1000000/s }}] }}]
routes: [{{ name: all, upstreams: ['http://127.0.0.1:9'] }}]",
            redis.url()
        )
    };
    let folder = Folder::make();
    let file = folder.write(
        "tidegate.yaml",
        config("{ name: other, deny: user, list: [eve] }", "one"),
    );
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let http = process.address("http").await;
    let mut client = crate::kit::Client::connect(http).await;
    let question = r#"{"ip": "192.0.2.1"}"#;
    assert!(
        client
            .post(question)
            .await
            .body
            .contains("\"allowed\":true")
    );

    let guard = "{ name: listed, deny: ip, redis: { set: Listed }, refresh: 1h }";
    folder.write("tidegate.yaml", config(guard, "two"));
    process.signal("HUP").await;
    process.logs(RELOADED, ("limits_added", "api/two")).await;
    let refused = client.post(question).await.body;
    assert!(refused.contains("\"guard\":\"listed\""), "{refused}");
    process.signal("TERM").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
}
