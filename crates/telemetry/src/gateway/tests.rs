use super::*;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use std::thread;
use std::time::Duration;
use tidegate_policy::route::{Balance, EjectionRules};
use tidegate_proxy::upstream_health::UpstreamHealth;

/// The duration of every request here.
const TOOK: Duration = Duration::from_micros(70);

struct World {
    gateway: Arc<GatewayMetrics>,
    registry: Registry,
}

impl World {
    fn new() -> Self {
        let gateway = Arc::<GatewayMetrics>::default();
        let mut registry = Registry::with_prefix("tidegate");
        registry.register_collector(Box::new(Arc::clone(&gateway)));
        Self { gateway, registry }
    }

    fn page(&self) -> String {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        page
    }

    /// Returns the series that begin with `name`, in the order of the page.
    fn series(&self, name: &str) -> Vec<String> {
        let page = self.page();
        let series = page.lines().filter(|line| line.starts_with(name));
        series.map(str::to_owned).collect()
    }
}

fn upstream_health(name: &str) -> Arc<UpstreamHealth> {
    let eject = EjectionRules {
        failures: 1,
        lasts: Duration::from_secs(10),
    };
    Arc::new(UpstreamHealth::new("orders", name, Some(eject)))
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn orders<'a>(patterns: &'a [String], upstreams: &'a [Arc<UpstreamHealth>]) -> RouteLabels<'a> {
    RouteLabels {
        id: "orders",
        is_on: true,
        patterns,
        upstreams,
    }
}

#[test]
fn a_server_without_routes_shows_nothing_of_a_gateway() {
    let world = World::new();
    assert_eq!(world.page(), "# EOF\n");
}

#[test]
fn requests_are_counted_by_route_pattern_and_full_status() {
    let world = World::new();
    let patterns = strings(&["/orders", "/orders/{id}"]);
    let routes = world.gateway.lay_out(&[orders(&patterns, &[])]);
    for status in [200, 200, 204, 404, 599, 600, 999] {
        routes[0].count(1, status, TOOK);
    }
    routes[0].count(0, 100, TOOK);
    world.gateway.count_unmatched(404);
    assert_eq!(
        world.series("tidegate_gateway_requests_total"),
        [
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders",status="100"} 1"#,
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders/{id}",status="200"} 2"#,
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders/{id}",status="204"} 1"#,
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders/{id}",status="404"} 1"#,
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders/{id}",status="599"} 1"#,
            r#"tidegate_gateway_requests_total{route="orders",route_path="/orders/{id}",status="other"} 2"#,
            r#"tidegate_gateway_requests_total{route="",route_path="",status="404"} 1"#,
        ]
    );
}

#[test]
fn conditions_and_upstreams_of_the_same_name_are_one_series() {
    let world = World::new();
    let patterns = strings(&["/orders", "/orders"]);
    let upstreams = [upstream_health("a:80"), upstream_health("a:80")];
    let routes = world.gateway.lay_out(&[orders(&patterns, &upstreams)]);
    routes[0].count(0, 200, TOOK);
    routes[0].count(1, 200, TOOK);
    routes[0].count_upstream(0, UpstreamOutcome::Answered);
    routes[0].count_upstream(1, UpstreamOutcome::Answered);
    upstreams[1].set_healthy(false);
    let page = world.page();
    for series in [
        r#"requests_total{route="orders",route_path="/orders",status="200"} 2"#,
        r#"upstream_requests_total{route="orders",upstream="a:80",outcome="answered"} 2"#,
        r#"upstream_healthy{route="orders",upstream="a:80"} 0"#,
    ] {
        let series = format!("tidegate_gateway_{series}\n");
        assert_eq!(page.matches(&series).count(), 1, "{series} in {page}");
    }
}

#[tokio::test]
async fn upstreams_are_shown_as_they_are() {
    use tidegate_proxy::balance::{Balancer, UpstreamSet};
    let world = World::new();
    let upstreams = [upstream_health("a:80"), upstream_health("b:80")];
    let routes = world.gateway.lay_out(&[orders(&[], &upstreams)]);
    let seats = upstreams.iter().map(|it| (Arc::clone(it), 1));
    let balancer = Balancer::new(seats, Balance::RoundRobin);
    let mut first = balancer.pick(UpstreamSet::default()).unwrap();
    let _second = balancer.pick(UpstreamSet::default()).unwrap();
    first.failed();
    routes[0].count_upstream(first.index(), UpstreamOutcome::RefusedConnection);
    drop(first);
    assert_eq!(
        world.series("tidegate_gateway_upstream"),
        [
            r#"tidegate_gateway_upstream_requests_total{route="orders",upstream="a:80",outcome="answered"} 0"#,
            r#"tidegate_gateway_upstream_requests_total{route="orders",upstream="a:80",outcome="refused_connection"} 1"#,
            r#"tidegate_gateway_upstream_requests_total{route="orders",upstream="b:80",outcome="answered"} 0"#,
            r#"tidegate_gateway_upstream_healthy{route="orders",upstream="a:80"} 0"#,
            r#"tidegate_gateway_upstream_healthy{route="orders",upstream="b:80"} 1"#,
            r#"tidegate_gateway_upstream_in_flight{route="orders",upstream="a:80"} 0"#,
            r#"tidegate_gateway_upstream_in_flight{route="orders",upstream="b:80"} 1"#,
            r#"tidegate_gateway_upstream_ejections_total{route="orders",upstream="a:80"} 1"#,
            r#"tidegate_gateway_upstream_ejections_total{route="orders",upstream="b:80"} 0"#,
        ]
    );
}

#[test]
fn every_outcome_has_its_own_label() {
    let world = World::new();
    let upstreams = [upstream_health("a:80")];
    let routes = world.gateway.lay_out(&[orders(&[], &upstreams)]);
    let outcomes = [
        (UpstreamOutcome::Answered, "answered"),
        (UpstreamOutcome::RefusedConnection, "refused_connection"),
        (UpstreamOutcome::Unreachable, "unreachable"),
        (UpstreamOutcome::ConnectTimeout, "connect_timeout"),
        (UpstreamOutcome::ResponseTimeout, "response_timeout"),
        (UpstreamOutcome::Broken, "broken"),
        (UpstreamOutcome::UploadFailed, "upload_failed"),
        (UpstreamOutcome::Abandoned, "abandoned"),
        (UpstreamOutcome::CutShort, "cut_short"),
    ];
    for (times, (outcome, _)) in (1..).zip(outcomes) {
        (0..times).for_each(|_| routes[0].count_upstream(0, outcome));
    }
    let page = world.page();
    for (times, (_, label)) in (1..).zip(outcomes) {
        let series = format!("outcome=\"{label}\"}} {times}\n");
        assert!(page.contains(&series), "{series} in {page}");
    }
}

#[test]
fn route_wide_events_are_counted_by_route() {
    let world = World::new();
    let routes = world.gateway.lay_out(&[orders(&[], &[])]);
    let open = [routes[0].open_tunnel(), routes[0].open_tunnel()];
    let [closed, _open] = open;
    drop(closed);
    routes[0].count_retry();
    (0..2).for_each(|_| routes[0].count_refund());
    (0..3).for_each(|_| routes[0].count_all_ejected());
    routes[0].count_message(MessageOutcome::Allowed);
    (0..2).for_each(|_| routes[0].count_message(MessageOutcome::Refused));
    (0..3).for_each(|_| routes[0].count_message(MessageOutcome::Undecided));
    let label = [("reason", "obs-fold")];
    world.gateway.rejected().get_or_create(&label).inc();
    let page = world.page();
    for series in [
        r#"retries_total{route="orders"} 1"#,
        r#"refunds_total{route="orders"} 2"#,
        r#"no_healthy_upstream_total{route="orders"} 3"#,
        r#"tunnels{route="orders"} 1"#,
        r#"messages_total{route="orders",outcome="allowed"} 1"#,
        r#"messages_total{route="orders",outcome="refused"} 2"#,
        r#"messages_total{route="orders",outcome="undecided"} 3"#,
        r#"rejected_total{reason="obs-fold"} 1"#,
    ] {
        let series = format!("tidegate_gateway_{series}\n");
        assert!(page.contains(&series), "{series} in {page}");
    }
}

#[test]
fn a_reload_continues_counters_by_name_and_drops_others() {
    let world = World::new();
    let patterns = strings(&["/orders", "/gone"]);
    let upstreams = [upstream_health("a:80"), upstream_health("gone:80")];
    let before = world.gateway.lay_out(&[orders(&patterns, &upstreams)]);
    let tunnel = before[0].open_tunnel();
    before[0].count_retry();
    for index in [0, 1] {
        before[0].count(index, 200, TOOK);
        before[0].count_upstream(index, UpstreamOutcome::Answered);
    }

    // The indices differ from before; the names decide.
    let patterns = strings(&["/new", "/orders"]);
    let upstreams = [upstream_health("new:80"), upstream_health("a:80")];
    let after = world.gateway.lay_out(&[orders(&patterns, &upstreams)]);
    after[0].count(1, 200, TOOK);
    after[0].count_upstream(1, UpstreamOutcome::Answered);
    // A request from before the reload ends only now, as does a tunnel.
    before[0].count(0, 200, TOOK);
    before[0].count_upstream(0, UpstreamOutcome::Answered);
    before[0].count_retry();
    drop(tunnel);

    let page = world.page();
    for series in [
        r#"requests_total{route="orders",route_path="/orders",status="200"} 3"#,
        r#"upstream_requests_total{route="orders",upstream="a:80",outcome="answered"} 3"#,
        r#"upstream_requests_total{route="orders",upstream="new:80",outcome="answered"} 0"#,
        r#"retries_total{route="orders"} 2"#,
        r#"tunnels{route="orders"} 0"#,
    ] {
        let series = format!("tidegate_gateway_{series}\n");
        assert!(page.contains(&series), "{series} in {page}");
    }
    assert!(!page.contains("gone"), "{page}");
}

#[test]
fn concurrent_counts_are_not_lost() {
    let world = World::new();
    let patterns = strings(&["*"]);
    let routes = world.gateway.lay_out(&[orders(&patterns, &[])]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| routes[0].count(0, 200, TOOK)));
        }
    });
    assert_eq!(
        world.series("tidegate_gateway_requests_total"),
        [r#"tidegate_gateway_requests_total{route="orders",route_path="*",status="200"} 40000"#]
    );
}

#[test]
fn odd_names_are_escaped() {
    let world = World::new();
    let patterns = strings(&[r#"/a"b\c"#]);
    let routes = world.gateway.lay_out(&[orders(&patterns, &[])]);
    routes[0].count(0, 200, TOOK);
    assert!(world.page().contains(r#"route_path="/a\"b\\c""#));
}

#[test]
fn request_times_are_shown_by_route() {
    let world = World::new();
    let (patterns, upstreams) = (strings(&["/orders", "/carts"]), [upstream_health("a:1")]);
    let routes = world.gateway.lay_out(&[orders(&patterns, &upstreams)]);
    routes[0].count(0, 200, TOOK);
    routes[0].count(1, 503, Duration::from_millis(3));
    let name = "tidegate_gateway_request_duration_seconds";
    assert_eq!(
        world.series(&format!("{name}_count")),
        [format!(r#"{name}_count{{route="orders"}} 2"#)]
    );
    for (bound, count) in [("0.00005", 0), ("0.0001", 1), ("0.0025", 1), ("0.005", 2)] {
        let series = format!(r#"{name}_bucket{{le="{bound}",route="orders"}} {count}"#);
        let bucket = format!(r#"{name}_bucket{{le="{bound}""#);
        assert_eq!(world.series(&bucket), [series]);
    }
}
