use super::{Outlet, Packet, RECOVERED_AFTER, StatsdMetrics};
use crate::decisions::{DecisionMetrics, Timing};
use futures_util::future::join;
use futures_util::poll;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Config, Descriptor, DescriptorHits, Limiter, Request};
use tidegate_config::statsd::{Format, Statsd, StatsdProtocol};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;

const API: &str = "policies: [{ name: api, limits: [{ name: small, rate: 5/h }, \
                   { name: large, rate: 9/h }, { name: soon, rate: 4/h, mode: shadow }, \
                   { name: free, rate: unlimited }] }]";

/// A limiter whose statistics are sent.
struct Scene {
    limiter: Limiter,
    decisions: Arc<DecisionMetrics>,
    outlet: Arc<Outlet>,
    registry: Registry,
}

impl Scene {
    fn new(config: &str, settings: &Statsd) -> Self {
        let config = Config::from_yaml(config).unwrap();
        let decisions = Arc::new(DecisionMetrics::new(&config.policies));
        let metrics = StatsdMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        Self {
            outlet: Outlet::new(settings, Arc::clone(&decisions), metrics),
            limiter: Limiter::builder().config(config).build().unwrap(),
            decisions,
            registry,
        }
    }

    fn check(&self, cost: u64) {
        let request = Request::new().cost(cost);
        let decision = self.limiter.check_now(&request).unwrap();
        let timing = Timing::start(false);
        self.decisions.count(&decision, &request, timing);
    }

    /// Returns the number of packets that were sent, and that failed.
    fn packets(&self) -> (u64, u64) {
        (self.count("sent"), self.count("failed"))
    }

    fn count(&self, outcome: &str) -> u64 {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        let series = format!("statsd_packets_total{{outcome=\"{outcome}\"}} ");
        let mut lines = page.lines();
        let count = lines.find_map(|line| line.strip_prefix(&series));
        count.unwrap().parse().unwrap()
    }

    async fn is_failing(&self) -> bool {
        self.outlet.sender.lock().await.failing.is_some()
    }
}

fn settings(address: &str) -> Statsd {
    Statsd {
        address: address.to_owned(),
        prefix: "p".to_owned(),
        ..Statsd::default()
    }
}

async fn datagram(socket: &UdpSocket) -> String {
    let mut packet = vec![0; 65_536];
    let received = timeout(Duration::from_secs(30), socket.recv(&mut packet));
    let length = received.await.unwrap().unwrap();
    String::from_utf8(packet[..length].to_vec()).unwrap()
}

async fn udp() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

#[tokio::test]
async fn counter_increases_are_sent_under_envoyproxy_ratelimit_names() {
    let (socket, address) = udp().await;
    let scene = Scene::new(API, &settings(&address));
    for cost in [4, 4, 1] {
        scene.check(cost);
    }
    scene.outlet.flush().await;
    let mut lines: Vec<String> = datagram(&socket).await.lines().map(Into::into).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "p.api.large.total_hits:9|c",
            "p.api.large.within_limit:9|c",
            "p.api.small.near_limit:1|c",
            "p.api.small.over_limit:4|c",
            "p.api.small.total_hits:9|c",
            "p.api.small.within_limit:5|c",
            "p.api.soon.near_limit:1|c",
            "p.api.soon.over_limit:5|c",
            "p.api.soon.shadow_mode:5|c",
            "p.api.soon.total_hits:9|c",
            "p.api.soon.within_limit:4|c",
        ]
    );
    // Nothing has grown, so nothing is sent: the next packet belongs to the next flush with growth.
    scene.outlet.flush().await;
    scene.check(9);
    scene.outlet.flush().await;
    let packet = datagram(&socket).await;
    assert!(packet.contains("p.api.small.over_limit:9|c\n"), "{packet}");
    assert!(!packet.contains("near_limit"), "{packet}");
    assert_eq!(scene.packets(), (2, 0));
}

#[tokio::test]
async fn tags_are_written_in_each_format() {
    let (socket, address) = udp().await;
    let tags = [("version", "1.2:3"), ("env", "prod"), ("none", "")];
    for (format, expected) in [
        (
            Format::Statsd,
            "p.api.large.total_hits.__env=prod.__version=1_2_3:1|c",
        ),
        (
            Format::Dogstatsd,
            "p.api.large.total_hits:1|c|#env:prod,version:1_2_3",
        ),
    ] {
        let settings = Statsd {
            format,
            tags: tags
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            ..settings(&address)
        };
        let scene = Scene::new(API, &settings);
        scene.check(1);
        scene.outlet.flush().await;
        let packet = datagram(&socket).await;
        assert!(packet.lines().any(|line| line == expected), "{packet}");
    }
}

#[tokio::test]
async fn many_statistics_take_several_datagrams_none_of_them_too_long() {
    let (socket, address) = udp().await;
    let limits: Vec<String> = (0..100)
        .map(|nth| format!("{{ name: a-limit-with-quite-a-long-name-{nth}, rate: 9/h }}"))
        .collect();
    let config = format!(
        "policies: [{{ name: api, limits: [{}] }}]",
        limits.join(", ")
    );
    let scene = Scene::new(&config, &settings(&address));
    scene.check(1);
    scene.outlet.flush().await;
    let (sent, failed) = scene.packets();
    assert!(sent > 1 && failed == 0, "{sent} {failed}");
    let mut lines = 0;
    for _ in 0..sent {
        let packet = datagram(&socket).await;
        assert!(packet.len() <= 1_432 && packet.ends_with('\n'), "{packet}");
        lines += packet.lines().count();
    }
    assert_eq!(lines, 200);
}

#[tokio::test]
async fn unsent_counts_are_sent_with_the_next_flush() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let settings = Statsd {
        protocol: StatsdProtocol::Tcp,
        ..settings(&address)
    };
    let scene = Scene::new(API, &settings);
    scene.check(1);
    scene.outlet.flush().await;
    assert_eq!(scene.packets(), (0, 1));
    let listener = TcpListener::bind(&address).await.unwrap();
    scene.check(2);
    scene.outlet.flush().await;
    assert_eq!(scene.packets(), (1, 1));
    let mut text = vec![0; 4_096];
    let reading = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read(&mut text).await.unwrap()
    };
    let read = timeout(Duration::from_mins(1), reading).await;
    let length = read.expect("a packet comes");
    let text = String::from_utf8_lossy(&text[..length]).into_owned();
    assert!(text.contains("p.api.large.total_hits:3|c\n"), "{text}");
}

#[tokio::test]
async fn a_closed_udp_port_is_one_failure() {
    let (socket, address) = udp().await;
    drop(socket);
    let scene = Scene::new(API, &settings(&address));
    // The first is sent, and refused; the next flush gets the error.
    let flush = async || {
        scene.check(1);
        scene.outlet.flush().await;
    };
    for _ in 0..2 {
        flush().await;
    }
    assert!(scene.is_failing().await);
    for _ in 0..6 {
        flush().await;
        assert!(scene.is_failing().await, "{:?}", scene.packets());
    }
    let (sent, failed) = scene.packets();
    assert!(sent > 1 && failed > 1, "{sent} {failed}");
    let _socket = UdpSocket::bind(&address).await.unwrap();
    // The last datagram may have been refused before.
    flush().await;
    let (_, failed) = scene.packets();
    for _ in 0..RECOVERED_AFTER {
        flush().await;
    }
    assert_eq!(scene.packets().1, failed);
    assert!(!scene.is_failing().await);
}

#[tokio::test]
async fn a_flush_that_waits_for_another_does_not_send_the_same_counts_again() {
    let (socket, address) = udp().await;
    let scene = Scene::new(API, &settings(&address));
    scene.check(1);
    let lock = scene.outlet.sender.lock().await;
    let mut periodic = pin!(scene.outlet.flush());
    let mut last = pin!(scene.outlet.finish());
    assert!(poll!(&mut periodic).is_pending() && poll!(&mut last).is_pending());
    drop(lock);
    join(periodic, last).await;
    assert_eq!(scene.packets(), (1, 0));
    assert!(datagram(&socket).await.contains("large.total_hits:1|c\n"));
}

#[tokio::test]
async fn a_partly_sent_packet_resumes_at_its_broken_line() {
    let (_socket, address) = udp().await;
    let scene = Scene::new(API, &settings(&address));
    scene.check(1);
    let mut sender = scene.outlet.sender.lock().await;
    let lines = |packets: &[Packet]| -> Vec<String> {
        let texts = packets.iter().map(|packet| packet.text.as_str());
        texts.flat_map(str::lines).map(Into::into).collect()
    };
    let mut packets = sender.packets(scene.decisions.pending());
    let before = lines(&packets);
    // Take the first line, and one byte of the second.
    packets[0].taken = before[0].len() + 2;
    drop(packets);
    let packets = sender.packets(scene.decisions.pending());
    assert_eq!(lines(&packets), before[2..]);
}

#[tokio::test]
async fn an_oversized_line_is_dropped_and_delays_no_other() {
    let (socket, address) = udp().await;
    let long = "x".repeat(1_000);
    let config = format!(
        "policies: [{{ name: api, limits: [\
         {{ name: short, match: {{ descriptor: [c] }}, rate: 9/h }},\
         {{ name: long, match: {{ descriptor: [a: {long}, b: {long}] }}, rate: 9/h }}] }}]"
    );
    let scene = Scene::new(&config, &settings(&address));
    for _ in 0..2 {
        let descriptor = |entries| Descriptor {
            entries,
            hits: DescriptorHits::AsRequest,
            limit: None,
        };
        let entries = [("a", long.as_str()), ("b", long.as_str())];
        let described = [descriptor(&entries), descriptor(&[("c", "1")])];
        let request = Request::new().descriptors(&described);
        let decision = scene.limiter.check_now(&request).unwrap();
        let timing = Timing::start(false);
        scene.decisions.count(&decision, &request, timing);
        scene.outlet.flush().await;
        let packet = datagram(&socket).await;
        assert!(!packet.contains('x'), "{packet}");
        assert!(packet.contains("p.api.c.total_hits:1|c\n"), "{packet}");
    }
    assert_eq!(scene.packets(), (2, 0));
    // Each request has two statistics.
    assert_eq!(scene.count("dropped"), 4);
    scene.outlet.flush().await;
    assert_eq!(scene.count("dropped"), 4);
}
