//! Spans, from a request to a collector.

#![expect(
    clippy::float_cmp,
    reason = "these are counts: whole, and far below 2^53"
)]

use crate::kit::collector::Span;
use crate::kit::programs::Program;
use crate::kit::{Client, Collector, Gate, Upstream, eventually, in_time, page};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tonic::transport::Endpoint;

const POLICIES: &str =
    "policies: [{ name: api, limits: [{ name: per-client, key: ip, rate: 1/h burst 2 }] }]\n";

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Returns a `traceparent` with these flags.
fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{CALLER}-{flags}\r\n")
}

/// Sends a request for `path` with these header lines.
async fn ask(http: SocketAddr, path: &str, lines: &str, body: &str) -> u16 {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\n{lines}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    Client::connect(http).await.ask(&request).await.status
}

async fn check(http: SocketAddr, lines: &str) -> u16 {
    ask(
        http,
        "/v1/check",
        lines,
        r#"{"ip": "192.0.2.77", "path": "/hush"}"#,
    )
    .await
}

#[tokio::test]
async fn a_decision_belongs_to_the_trace_of_its_caller() {
    let collector = Collector::start().await;
    let gate = Gate::start(&(collector.traces("0%") + POLICIES)).await;
    assert_eq!(check(gate.http, &traceparent("01")).await, 200);
    let request = collector.span("/v1/check").await;
    assert_eq!((request.trace(), request.parent()), (TRACE, Some(CALLER)));
    assert_eq!(request.kind(), 2, "a server's");
    let says = |name| request.says(name);
    assert_eq!(says("http.response.status_code").as_deref(), Some("200"));
    assert_eq!(says("tidegate.listener").as_deref(), Some("http"));
    let decision = collector.span("decide").await;
    assert_eq!(decision.trace(), TRACE);
    assert_eq!(decision.parent(), Some(request.id()));
    for (name, value) in [
        ("tidegate.policy", "api"),
        ("tidegate.limit", "per-client"),
        ("tidegate.outcome", "allowed"),
        ("tidegate.decided_by", "store"),
        ("tidegate.capacity", "2"),
        ("tidegate.remaining", "1"),
    ] {
        assert_eq!(decision.says(name).as_deref(), Some(value), "{name}");
    }
    let head = &collector.heads()[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(head.contains("x-api-key: hunter2"), "{head}");
}

#[tokio::test]
async fn spans_contain_no_client_data() {
    let collector = Collector::start().await;
    let gate = Gate::start(&(collector.traces("100%") + POLICIES)).await;
    for _ in 0..3 {
        check(gate.http, "x-secret: mum\r\n").await;
    }
    eventually("all three", async || {
        (collector.spans().len() >= 6).then_some(())
    })
    .await;
    for body in collector.bodies() {
        for secret in ["192.0.2.77", "hush", "mum", "hunter2"] {
            assert!(!body.contains(secret), "{secret} in {body}");
        }
    }
    let refused = collector.spans().into_iter();
    let refused =
        refused.filter(|span| span.says("tidegate.outcome").as_deref() == Some("refused"));
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].says("tidegate.retry_after_us").is_some());
    assert!(!refused[0].is_error(), "a refusal is an answer");
}

/// The caller decides on sampling; without a caller's decision, it is random.
#[tokio::test]
async fn the_callers_sampling_decision_is_followed() {
    let collector = Collector::start().await;
    let all = Gate::start(&(collector.traces("100%") + POLICIES)).await;
    check(all.http, &traceparent("00")).await;
    // Invalid, so a new trace starts.
    check(all.http, "traceparent: 00-nonsense\r\n").await;
    let span = collector.span("/v1/check").await;
    assert_eq!(span.parent(), None);
    assert_ne!(span.trace(), TRACE);

    let none = Gate::start(&(collector.traces("0%") + POLICIES)).await;
    check(none.http, "").await;
    check(none.http, &traceparent("01")).await;
    eventually("the caller's", async || {
        let spans = collector.spans();
        spans.iter().any(|span| span.trace() == TRACE).then_some(())
    })
    .await;
    let requests = collector.spans().into_iter();
    let requests = requests.filter(|span| span.name() == "/v1/check");
    assert_eq!(requests.count(), 2, "one of each server");
}

#[tokio::test]
async fn an_upstream_gets_the_parent_span() {
    let collector = Collector::start().await;
    let upstream = Upstream::start().await;
    let routes = format!(
        "routes: [{{ name: orders, match: {{ path: /api/orders }}, upstreams: ['http://{}'], policy: api }}]\n",
        upstream.address
    );
    let config = collector.traces("0%") + &routes + POLICIES;
    let gate = Gate::start(&config).await;
    let mut client = Client::connect(gate.gateway.unwrap()).await;
    let get =
        |lines: &str| format!("GET /api/orders/77?token=hush HTTP/1.1\r\nhost: a\r\n{lines}\r\n");

    let lines = traceparent("01") + "tracestate: vendor=1\r\n";
    assert_eq!(client.ask(&get(&lines)).await.status, 200);
    let request = collector.span("GET /api/orders").await;
    let forwarded = collector.span("upstream").await;
    assert_eq!((request.trace(), request.parent()), (TRACE, Some(CALLER)));
    assert_eq!(forwarded.kind(), 3, "a client's");
    assert_eq!(forwarded.parent(), Some(request.id()));
    let told = format!("00-{TRACE}-{}-01", forwarded.id());
    assert_eq!(upstream.last("traceparent"), Some(told));
    assert_eq!(upstream.last("tracestate").as_deref(), Some("vendor=1"));
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/api/orders"),
        ("tidegate.route", "orders"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(request.says(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(collector.span("decide").await.parent(), Some(request.id()));
    assert!(!collector.bodies().concat().contains("hush"));

    // An unsampled context is forwarded unchanged.
    assert_eq!(client.ask(&get(&traceparent("00"))).await.status, 200);
    let told = format!("00-{TRACE}-{CALLER}-00");
    assert_eq!(upstream.last("traceparent"), Some(told));
    // A refused request has no upstream.
    assert_eq!(client.ask(&get(&traceparent("01"))).await.status, 429);
    eventually("the refusal", async || {
        let mut spans = collector.spans().into_iter();
        spans.find(|span| span.says("http.response.status_code").as_deref() == Some("429"))
    })
    .await;
    let upstreams = collector.spans().into_iter();
    assert_eq!(
        upstreams.filter(|span| span.name() == "upstream").count(),
        1
    );
}

/// Any client can send requests to a gateway, and does not control sampling there or behind it.
#[tokio::test]
async fn an_untrusted_client_could_force_sampling() {
    let collector = Collector::start().await;
    let upstream = Upstream::start().await;
    let config = |sample| {
        let route = format!(
            "routes: [{{ name: a, match: {{ path: / }}, upstreams: ['http://{}'] }}]\n",
            upstream.address
        );
        let policies = POLICIES.replace("burst 2", "burst 9");
        collector.traces(sample) + "client: { trusted_proxies: [] }\n" + &route + &policies
    };
    let get = |flags| format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", traceparent(flags));
    let none = Gate::start(&config("0%")).await;
    let mut client = Client::connect(none.gateway.unwrap()).await;
    assert_eq!(client.ask(&get("01")).await.status, 200);
    // Upstreams trust the gateway, which does not mark the trace as sampled.
    let told = format!("00-{TRACE}-{CALLER}-00");
    assert_eq!(upstream.last("traceparent"), Some(told));
    the_unreadable_stays_here(&mut client, &upstream).await;

    let all = Gate::start(&config("100%")).await;
    let mut client = Client::connect(all.gateway.unwrap()).await;
    assert_eq!(client.ask(&get("00")).await.status, 200);
    // A client cannot suppress sampling either; it only chooses the trace id.
    let request = collector.span("GET /").await;
    assert_eq!((request.trace(), request.parent()), (TRACE, Some(CALLER)));
    let told = upstream.last("traceparent").unwrap();
    assert!(told.starts_with(&format!("00-{TRACE}-")), "{told}");
    assert!(told.ends_with("-01"), "{told}");
    for gate in [none, all] {
        gate.process.signal("TERM").await;
        assert!(gate.process.ended().await.status.success());
    }
    // Everything was sent by now.
    let requests = collector.spans().into_iter();
    assert_eq!(requests.filter(|span| span.name() == "GET /").count(), 1);
}

/// The gateway removes an invalid context, because an upstream might read it.
async fn the_unreadable_stays_here(client: &mut Client, upstream: &Upstream) {
    let good = traceparent("01");
    for parent in [
        good.repeat(2),
        good.replace(TRACE, &TRACE.to_uppercase()),
        good.replace("-01\r\n", "-01-more\r\n"),
        "traceparent: 00-nonsense\r\n".to_owned(),
    ] {
        let get = format!("GET / HTTP/1.1\r\nhost: a\r\n{parent}tracestate: vendor=1\r\n\r\n");
        assert_eq!(client.ask(&get).await.status, 200, "{parent}");
        assert_eq!(upstream.last("traceparent"), None, "{parent}");
        assert_eq!(upstream.last("tracestate"), None, "{parent}");
    }
}

/// Envoy's check requests and reservations are decisions like any other.
#[tokio::test]
async fn every_kind_of_check_is_recorded() {
    let collector = Collector::start().await;
    let policies = "policies: [{ name: api, reserve: 30s, limits: [{ name: per-client, key: ip, rate: 1000/h }] }]\n";
    let gate = Gate::start(&(collector.traces("0%") + policies)).await;
    let lines = traceparent("01");
    let one = r#"{"ip": "192.0.2.1"}"#;
    assert_eq!(ask(gate.http, "/v1/reserve", &lines, one).await, 200);
    let two = r#"[{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]"#;
    assert_eq!(ask(gate.http, "/v1/check", &lines, two).await, 200);
    let envoy = r#"{"domain": "api", "descriptors": [{"entries": [{"key": "a", "value": "b"}]}]}"#;
    assert_eq!(ask(gate.http, "/json", &lines, envoy).await, 200);
    let auth = format!(
        "GET /v1/auth HTTP/1.1\r\nhost: a\r\nx-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-for: 192.0.2.9\r\n{lines}\r\n"
    );
    assert_eq!(
        Client::connect(gate.http).await.ask(&auth).await.status,
        200
    );
    for name in ["/v1/reserve", "/v1/check", "/json", "/v1/auth"] {
        let request = collector.span(name).await;
        let decisions = || {
            let spans = collector.spans().into_iter();
            let within = spans.filter(|span| span.parent() == Some(request.id()));
            within.filter(|span| span.name() == "decide").count()
        };
        let expected = if name == "/v1/check" { 2 } else { 1 };
        assert_eq!(decisions(), expected, "{name}");
    }
}

/// Sends a call with its caller's trace; returns the result.
async fn call(grpc: SocketAddr, domain: &str) -> Result<RateLimitResponse, tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{grpc}")).unwrap();
    let mut client = RateLimitServiceClient::new(endpoint.connect().await.unwrap());
    let entry = Entry {
        key: "user".to_owned(),
        value: "ann-of-hush".to_owned(),
    };
    let descriptor = RateLimitDescriptor {
        entries: vec![entry],
        ..RateLimitDescriptor::default()
    };
    let mut request = tonic::Request::new(RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: vec![descriptor],
        hits_addend: 0,
    });
    let parent = format!("00-{TRACE}-{CALLER}-01").parse().unwrap();
    request.metadata_mut().insert("traceparent", parent);
    let answer = client.should_rate_limit(request).await;
    answer.map(tonic::Response::into_inner)
}

const METHOD: &str = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

#[tokio::test]
async fn a_grpc_call_is_a_span_with_its_status() {
    let collector = Collector::start().await;
    let policies = "policies: [{ name: api, domain: shop, limits: [{ name: per-user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/h }] }]\n";
    let config = collector.traces("0%") + policies;
    let gate = Gate::with(&config, &["--grpc", "127.0.0.1:0"]).await;
    let grpc = gate.listener("grpc");
    for code in [Code::Ok, Code::OverLimit] {
        let answer = call(grpc, "shop").await.unwrap();
        assert_eq!(answer.overall_code(), code);
    }
    // An empty domain is invalid.
    let wrong = call(grpc, "").await.unwrap_err();
    assert_eq!(wrong.code(), tonic::Code::InvalidArgument);
    let calls = eventually("all three", async || {
        let spans = collector.spans().into_iter();
        let calls: Vec<_> = spans.filter(|span| span.name() == METHOD).collect();
        (calls.len() == 3).then_some(calls)
    });
    let calls = calls.await;
    for (span, status) in calls.iter().zip(["0", "0", "3"]) {
        assert_eq!((span.trace(), span.parent()), (TRACE, Some(CALLER)));
        assert_eq!((span.kind(), span.is_error()), (2, false));
        for (name, value) in [
            ("rpc.system", "grpc"),
            ("tidegate.listener", "grpc"),
            ("rpc.grpc.status_code", status),
        ] {
            assert_eq!(span.says(name).as_deref(), Some(value), "{name}");
        }
    }
    let spans = collector.spans();
    let outcome = |call: &Span| {
        let mut within = spans.iter().filter(|it| it.parent() == Some(call.id()));
        within.next().and_then(|it| it.says("tidegate.outcome"))
    };
    let outcomes: Vec<_> = calls.iter().map(outcome).collect();
    let expected = [Some("allowed"), Some("refused"), None];
    assert_eq!(outcomes, expected.map(|it| it.map(str::to_owned)));
    assert!(!collector.bodies().concat().contains("hush"));
}

#[tokio::test]
async fn a_call_that_could_not_be_decided_was_no_error_in_its_trace() {
    let collector = Collector::start().await;
    let policies = "store: { url: 'redis://127.0.0.1:1', on_failure: error }\n\
        policies: [{ name: api, domain: shop, limits: [{ name: all, match: { descriptor: [user] }, rate: 1/h }] }]\n";
    let config = collector.traces("0%") + policies;
    let gate = Gate::with(&config, &["--grpc", "127.0.0.1:0"]).await;
    let away = call(gate.listener("grpc"), "shop").await.unwrap_err();
    assert_eq!(away.code(), tonic::Code::Unavailable);
    let span = collector.span(METHOD).await;
    assert!(span.is_error());
    assert_eq!(span.says("rpc.grpc.status_code").as_deref(), Some("14"));
    assert!(collector.span("decide").await.is_error());
}

#[tokio::test]
async fn an_unreachable_collector_costs_only_spans() {
    let collector = Collector::start().await;
    // Three are retried later, and the fourth is dropped; later spans are accepted.
    for _ in 0..3 {
        collector.answer("503 Service Unavailable\r\nretry-after: 0");
    }
    collector.answer("400 Bad Request");
    let gate = Gate::start(&(collector.traces("100%") + POLICIES)).await;
    assert_eq!(check(gate.http, "").await, 200);
    let count = async |outcome: &str| {
        let page = page(gate.admin).await;
        page[&format!("tidegate_spans_total{{outcome=\"{outcome}\"}}")]
    };
    eventually("it is given up", async || {
        (count("failed").await >= 2.0).then_some(())
    })
    .await;
    assert_eq!(count("sent").await, 0.0);
    assert_eq!(check(gate.http, "").await, 200);
    eventually("the next is taken", async || {
        (count("sent").await >= 2.0).then_some(())
    })
    .await;
    assert_eq!(count("dropped").await, 0.0);
}

#[tokio::test]
async fn the_last_spans_are_sent_before_the_program_ends() {
    let collector = Collector::start().await;
    let gate = Gate::start(&(collector.traces("100%") + POLICIES)).await;
    assert_eq!(check(gate.http, "").await, 200);
    gate.process.signal("TERM").await;
    let ended = gate.process.ended().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(collector.spans().len(), 2);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

/// The collector's own code reads the spans.
#[tokio::test]
async fn the_opentelemetry_collector_accepts_the_spans() {
    let Some(otlp) = Program::Otlp.find() else {
        return;
    };
    let collector = Collector::start().await;
    let gate = Gate::start(&(collector.traces("100%") + POLICIES)).await;
    assert_eq!(check(gate.http, &traceparent("01")).await, 200);
    let request = collector.span("/v1/check").await;
    let decision = collector.span("decide").await;
    let mut read = Command::new(otlp)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let body = collector.bodies().remove(0);
    let mut stdin = read.stdin.take().unwrap();
    let reading = async {
        stdin.write_all(body.as_bytes()).await.unwrap();
        drop(stdin);
        read.wait_with_output().await.unwrap()
    };
    let read = in_time("the end of the collector's code", reading).await;
    assert!(read.status.success());
    let lines = String::from_utf8(read.stdout).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(
        lines,
        [
            format!(
                "shop {TRACE} {} {CALLER} Server true 2 /v1/check",
                request.id()
            ),
            format!(
                "shop {TRACE} {} {} Internal true 6 decide",
                decision.id(),
                request.id()
            ),
        ]
    );
}
