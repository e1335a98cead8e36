//! A gateway that can be reloaded, and upstreams that send their names.

use crate::admin::samples;
use crate::kit::client::Reply;
use crate::kit::{Client, get};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_control::failure::Failure;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tidegate_server::program;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The listeners of all configurations in these tests.
pub(super) const LISTEN: &str =
    "listen: { gateway: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0' }";

/// A server with a gateway in this process; it stops when dropped.
pub(super) struct ReloadableServer {
    pub(super) gateway: SocketAddr,
    pub(super) admin: SocketAddr,
    serving: ServerState,
    _tasks: Tasks,
}

impl ReloadableServer {
    /// Serves `config`, which has no `listen`.
    pub(super) async fn start(config: &str) -> Self {
        let config = parse(config);
        let listen = config.listen.clone();
        let serving = ServerState::start(config).await.unwrap();
        let listeners = tidegate_net::bind(&listen).await.unwrap();
        let gateway = listeners.gateway.as_ref().unwrap().tcp().unwrap();
        let admin = listeners.admin.tcp().unwrap();
        let tasks = Tasks::new();
        let served = serving.clone();
        tasks.spawn(async move {
            let never = std::future::pending();
            let _end = program::run(listeners, served, None, Bounds::default(), never).await;
        });
        Self {
            gateway,
            admin,
            serving,
            _tasks: tasks,
        }
    }

    pub(super) fn reload(&self, config: &str) {
        self.serving.reload(parse(config)).unwrap();
    }

    pub(super) fn try_reload(&self, config: Config) -> Result<(), Failure> {
        self.serving.reload(config)
    }

    /// Sends a GET for `path` to the gateway, on a new connection.
    pub(super) async fn get(&self, path: &str) -> Reply {
        get(self.gateway, path).await
    }

    pub(super) async fn metrics(&self) -> BTreeMap<String, f64> {
        samples(&get(self.admin, "/metrics").await.body)
    }
}

/// Returns the numbers of applied and rejected reloads from the metrics.
pub(super) fn reloads(samples: &BTreeMap<String, f64>) -> [Option<f64>; 2] {
    ["applied", "rejected"].map(|outcome| {
        let series = format!("tidegate_reloads_total{{outcome=\"{outcome}\"}}");
        samples.get(&series).copied()
    })
}

fn parse(config: &str) -> Config {
    let text = format!("{LISTEN}\n{config}");
    Config::parse(&text, "test.yaml", &NoEnvironment).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns one limit that is never reached, and one route to `upstream`. The limit and the
/// responses carry `name`.
pub(super) fn one_route(name: &str, upstream: &Upstream) -> String {
    format!(
        "policies: [{{ name: api, limits: [{{ name: limit-{name}, rate: 1000000/s }}] }}]
routes: [{{ name: all, {} }}]",
        marked(name, upstream)
    )
}

/// Returns the upstream of a route, and a header for its responses.
pub(super) fn marked(name: &str, upstream: &Upstream) -> String {
    format!(
        "upstreams: ['http://{}'], response_headers: {{ set: {{ X-Configuration: {name} }} }}",
        upstream.address
    )
}

/// Returns the name of the configuration behind a whole response: its upstream, its route and its
/// limit.
pub(super) fn answered_by(reply: &Reply) -> &str {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let name = reply.body.as_str();
    assert_eq!(reply.header("x-configuration"), Some(name), "{reply:?}");
    let policy = reply.header("ratelimit-policy").unwrap();
    assert!(
        policy.starts_with(&format!("\"limit-{name}\";")),
        "{reply:?}"
    );
    name
}

/// Sends a request for `path` on a kept connection.
pub(super) async fn ask(client: &mut Client, path: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    client.ask(&request).await
}

/// An upstream that replies with its name immediately, and on command for `/held`.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    pub(super) held: Arc<HeldRequests>,
    _tasks: Arc<Tasks>,
}

/// The state of requests for `/held`.
#[derive(Default)]
pub(super) struct HeldRequests {
    /// A request has arrived.
    pub(super) arrived: Notify,
    /// Releases one request.
    pub(super) release: Notify,
    /// A client closed its connection instead.
    pub(super) given_up: Notify,
}

impl Upstream {
    pub(super) async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::new(HeldRequests::default());
        let tasks = Arc::new(Tasks::new());
        let (group, known) = (Arc::downgrade(&tasks), Arc::clone(&held));
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Some(group) = group.upgrade() else {
                    return;
                };
                let held = Arc::clone(&known);
                group.spawn(async move { serve(stream, name, &held).await.unwrap_or_default() });
            }
        });
        Self {
            address,
            held,
            _tasks: tasks,
        }
    }
}

/// Replies until the other side closes.
async fn serve(mut stream: TcpStream, name: &str, held: &HeldRequests) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        while let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let request: Vec<u8> = read.drain(..end + 4).collect();
            if request.starts_with(b"GET /held ") {
                held.arrived.notify_one();
                tokio::select! {
                    () = held.release.notified() => {}
                    _ = stream.read_buf(&mut read) => {
                        held.given_up.notify_one();
                        return Ok(());
                    }
                }
            }
            let length = name.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{name}");
            stream.write_all(answer.as_bytes()).await?;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
}
