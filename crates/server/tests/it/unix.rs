//! Listeners on unix sockets.

use crate::kit::folder::Folder;
use crate::kit::process::{Process, run, tidegate};
use crate::kit::{Client, Reply};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use tokio::net::UnixStream;
use tokio::process::Command;
use tonic::Code;
use tonic::transport::Endpoint;

const POLICIES: &str =
    "policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 2/day }] }]";

/// Starts the program with its HTTP API on the socket at `path`.
async fn start(folder: &Folder, path: &str, more: &str) -> Process {
    let text = format!("listen: {{ http: 'unix:{path}{more}', admin: '127.0.0.1:0' }}\n{POLICIES}");
    let file = folder.write("tidegate.yaml", text);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    process.logs("listening", ("listener", "http")).await;
    process.address("admin").await;
    process
}

async fn ask(path: &str, request: &str) -> Reply {
    let stream = UnixStream::connect(path).await.unwrap();
    Client::over(stream).ask(request).await
}

async fn check(path: &str) -> Reply {
    let stream = UnixStream::connect(path).await.unwrap();
    Client::over(stream).post(r#"{"ip": "192.0.2.1"}"#).await
}

/// A path in a folder for one test.
fn socket(folder: &Folder) -> String {
    let file = folder.write("any", "");
    let folder = Path::new(&file).parent().unwrap();
    folder.join("http.sock").to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_unix_socket_serves_and_is_removed_at_shutdown() {
    let folder = Folder::make();
    let path = socket(&folder);
    let process = start(&folder, &path, "?mode=600").await;
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(check(&path).await.is_allowed());

    let mut curl = Command::new("curl");
    curl.args(["-s", "--max-time", "20", "--unix-socket", &path]);
    curl.args(["http://any/v1/check", "-d", r#"{"ip": "192.0.2.1"}"#]);
    let said = curl.output().await.expect("curl is there").stdout;
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["remaining"], 0);
    assert!(!check(&path).await.is_allowed());

    process.signal("TERM").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!fs::exists(&path).unwrap(), "the socket is still there");
}

/// Clients on a unix socket count as 127.0.0.1, which is a trusted proxy by default.
#[tokio::test]
async fn a_proxy_on_a_unix_socket_is_trusted_as_this_machine_is() {
    let folder = Folder::make();
    let path = socket(&folder);
    let auth = |client: &str| {
        format!("GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n")
    };
    let process = start(&folder, &path, "").await;
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660, "by default");
    for (client, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("192.0.2.2", 200),
    ] {
        assert_eq!(ask(&path, &auth(client)).await.status, status, "{client}");
    }
    process.signal("TERM").await;
    process.ended().await;

    let text = format!(
        "listen: {{ http: 'unix:{path}', admin: '127.0.0.1:0' }}\nclient: {{ trusted_proxies: [] }}\n{POLICIES}"
    );
    let file = folder.write("tidegate.yaml", text);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    process.address("admin").await;
    assert_eq!(ask(&path, &auth("192.0.2.1")).await.status, 403);
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_nothing_else_is() {
    let folder = Folder::make();
    let path = socket(&folder);
    // Closing a socket leaves its file.
    drop(UnixListener::bind(&path).unwrap());
    let _first = start(&folder, &path, "").await;
    assert!(check(&path).await.is_allowed());

    let other = [
        "serve",
        "--http",
        &format!("unix:{path}"),
        "--admin",
        "127.0.0.1:0",
    ];
    let ended = run(tidegate(&other)).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let told = format!("cannot listen on unix:{path}");
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    assert!(check(&path).await.is_allowed(), "the first was cut off");

    let file = folder.write("precious", "data");
    let other = [
        "serve",
        "--http",
        &format!("unix:{file}"),
        "--admin",
        "127.0.0.1:0",
    ];
    let ended = run(tidegate(&other)).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("not a socket"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "data");
}

#[tokio::test]
async fn grpc_and_the_redis_protocol_are_spoken_on_unix_sockets() {
    let folder = Folder::make();
    let path = socket(&folder);
    let (grpc, resp) = (format!("{path}.grpc"), format!("{path}.resp"));
    let text = format!(
        "listen: {{ grpc: 'unix:{grpc}', resp: 'unix:{resp}', admin: '127.0.0.1:0' }}\n{POLICIES}"
    );
    let file = folder.write("tidegate.yaml", text);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    process.address("admin").await;

    let endpoint = Endpoint::from_shared(format!("unix://{grpc}")).unwrap();
    let mut envoy = RateLimitServiceClient::new(endpoint.connect().await.unwrap());
    let status = envoy
        .should_rate_limit(RateLimitRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");

    let client = redis::Client::open(format!("unix://{resp}")).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut throttle = redis::cmd("CL.THROTTLE");
    throttle.arg("key").arg(15).arg(1).arg(3_600);
    let said: [i64; 5] = throttle.query_async(&mut connection).await.unwrap();
    assert_eq!(said, [0, 16, 15, -1, 3_600]);

    process.signal("TERM").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
    for path in [grpc, resp] {
        assert!(!fs::exists(&path).unwrap(), "{path} is still there");
    }
}
