//! The number of series does not grow with clients.

use crate::kit::{Client, Gate, Upstream, get};
use futures_util::FutureExt;
use std::net::{IpAddr, Ipv4Addr};
use tidegate::Request;
use tidegate_config::Config;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tidegate_server::program;

const MILLION: u32 = 1_000_000;

/// Returns the names of all series, and the whole page.
fn series(page: &str) -> Vec<String> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let names = lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
    names.collect()
}

/// In this process, because a million requests over a socket would take minutes.
#[tokio::test]
async fn a_million_clients_and_paths_create_no_more_series_than_one() {
    let config = Config::from_yaml(
        "listen: { admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/h }
      - { name: per-path, key: path, rate: 1/h }
",
    )
    .unwrap();
    let listen = config.listen.clone();
    let serving = ServerState::start(config).await.unwrap();
    let decider = serving.decider().clone();
    let listeners = tidegate_net::bind(&listen).await.unwrap();
    let admin = listeners.admin.tcp().unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        let never = std::future::pending();
        let _end = program::run(listeners, serving, None, Bounds::default(), never).await;
    });

    let ask = |client: u32, path: u32| {
        let path = format!("/unheard-of/{path}");
        let address = IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + client));
        let request = Request::new().ip(address).path(&path);
        let outcome = decider.passes(&request).now_or_never();
        outcome.expect("it is memory").unwrap()
    };
    // One allowed request, some that both limits refuse, and some that one refuses.
    ask(0, 0);
    ask(0, 0);
    ask(0, MILLION);
    ask(MILLION, 0);
    let before = series(&get(admin, "/metrics").await.body);
    for nth in 1..MILLION {
        ask(nth, nth);
    }
    let page = get(admin, "/metrics").await.body;
    assert_eq!(series(&page), before);
    assert!(!page.contains("unheard-of") && !page.contains("11.0."));
    let counts = page.lines().filter_map(|line| {
        let series = line.strip_prefix("tidegate_decisions_total{")?;
        series.rsplit_once(' ')?.1.parse::<u32>().ok()
    });
    assert_eq!(counts.sum::<u32>(), MILLION + 3, "each of them is counted");
    assert!(page.len() < 50_000, "{} bytes", page.len());
}

#[tokio::test]
async fn gateway_metrics_have_only_its_routes_as_labels() {
    let upstream = Upstream::start().await;
    let gate = Gate::start(&format!(
        "routes: [{{ name: orders, match: {{ path: /api/orders }}, upstreams: ['http://{}'], policy: api }}]\n\
         policies: [{{ name: api, limits: [{{ name: all, key: path, rate: 1000000/s }}] }}]\n",
        upstream.address
    ))
    .await;
    let mut client = Client::connect(gate.gateway.unwrap()).await;
    let get_of = |path: String| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    let each = async |client: &mut Client, nth: u32| {
        let known = client
            .ask(&get_of(format!("/api/orders/{nth}?q={nth}")))
            .await;
        let unknown = client.ask(&get_of(format!("/unheard-of/{nth}"))).await;
        assert_eq!((known.status, unknown.status), (200, 404));
    };
    each(&mut client, 0).await;
    let before = series(&get(gate.admin, "/metrics").await.body);
    for nth in 1..2_000 {
        each(&mut client, nth).await;
    }
    let page = get(gate.admin, "/metrics").await.body;
    assert_eq!(series(&page), before);
    let counted = r#"tidegate_gateway_requests_total{route="orders",route_path="/api/orders",status="200"} 2000"#;
    assert!(page.contains(counted), "{page}");
}
