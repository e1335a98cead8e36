//! `tidegate healthcheck`.

use crate::kit::PLENTY;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, ProcessEnd, run, tidegate};

async fn healthcheck(arguments: &[&str]) -> ProcessEnd {
    let mut all = vec!["healthcheck"];
    all.extend(arguments);
    run(tidegate(&all)).await
}

#[tokio::test]
async fn healthcheck_succeeds_only_while_a_server_is_ready() {
    let mut process = Process::start(tidegate(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--shutdown-delay",
        "60",
    ]));
    let admin = process.address("admin").await.to_string();
    let ended = healthcheck(&["--admin", &admin]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "{\"ready\":true}\n");
    assert_eq!(ended.stderr, "");

    process.signal("TERM").await;
    process.logs("shutting down", ("signal", "SIGTERM")).await;
    let ended = loop {
        let ended = healthcheck(&["--admin", &admin]).await;
        if ended.status.code() != Some(0) {
            break ended;
        }
    };
    assert_eq!(ended.status.code(), Some(1));
    let expected = format!(
        "the server at {admin} is not healthy: 503 {{\"ready\":false,\"reasons\":[\"draining\"]}}"
    );
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    // The process still runs.
    let ended = healthcheck(&["--admin", &admin, "--live"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);

    process.signal("TERM").await;
    process.ended().await;
    let ended = healthcheck(&["--admin", &admin]).await;
    assert_eq!(ended.status.code(), Some(1));
    let expected = format!("the server at {admin} does not respond: ");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
}

#[tokio::test]
async fn healthcheck_finds_the_address_without_fetching_sources() {
    let folder = Folder::make();
    let any = folder.write("any", "");
    let socket = any.replace("/any", "/admin.sock");
    let text = PLENTY.replace("admin: '127.0.0.1:0'", &format!("admin: 'unix:{socket}'"));
    let served = folder.write("served.yaml", &text);
    let mut process = Process::start(tidegate(&["serve", &served]));
    process.logs("listening", ("listener", "admin")).await;
    // No listener at the port of this source.
    let text = format!(
        "listen: {{ admin: 'unix:{socket}' }}\nsources: [{{ http: {{ url: 'http://127.0.0.1:1/' }} }}]"
    );
    let file = folder.write("asked.yaml", &text);
    let ended = healthcheck(&["--config", &file]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn an_invalid_configuration_or_address_exits_with_2() {
    let folder = Folder::make();
    let file = folder.write("bad.yaml", "listen: { admin: 'nowhere' }");
    for arguments in [
        ["--config", file.as_str()],
        ["--config", "/nowhere/tidegate.yaml"],
        ["--admin", "8090"],
        ["--timeout", "0"],
    ] {
        let ended = healthcheck(&arguments).await;
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments:?} {}",
            ended.stderr
        );
    }
}
