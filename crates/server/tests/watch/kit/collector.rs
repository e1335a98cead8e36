//! A collector: accepts OTLP over HTTP, and validates it strictly.

use super::eventually;
use parking_lot::Mutex;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A collector that accepts everything, or sends a configured status.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<CollectorLog>>,
    _tasks: Tasks,
}

#[derive(Default)]
struct CollectorLog {
    heads: Vec<String>,
    bodies: Vec<String>,
    /// The statuses for the next posts, instead of 200.
    answers: Vec<&'static str>,
}

/// One span, as far as tests use it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span(Value);

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(CollectorLog::default()));
        let tasks = Tasks::new();
        let shared = Arc::clone(&seen);
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                take(stream, &shared).await;
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    /// Returns the configuration that sends spans here.
    pub(crate) fn traces(&self, sample: &str) -> String {
        let address = self.address;
        format!(
            "traces: {{ url: 'http://{address}', sample: {sample}, \
             headers: {{ x-api-key: hunter2 }}, service: shop }}\n"
        )
    }

    /// Sets the status for the next post: `503 Service Unavailable`.
    pub(crate) fn answer(&self, status: &'static str) {
        self.seen.lock().answers.push(status);
    }

    /// Returns the heads of the posts so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().heads.clone()
    }

    /// Returns the accepted bodies.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.seen.lock().bodies.clone()
    }

    /// Returns all accepted spans, which must be valid.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies();
        bodies.iter().flat_map(|body| spans(body)).collect()
    }

    /// Waits for a span of this name.
    pub(crate) async fn span(&self, name: &str) -> Span {
        eventually(&format!("a span {name}"), async || {
            self.spans().into_iter().find(|span| span.name() == name)
        })
        .await
    }
}

async fn take(mut stream: TcpStream, seen: &Mutex<CollectorLog>) {
    let mut asked = Vec::new();
    let (head, body) = loop {
        match stream.read_buf(&mut asked).await {
            Ok(1..) => {}
            _ => return,
        }
        let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(asked[..end].to_vec()).unwrap();
        let length = head.to_ascii_lowercase();
        let (_, length) = length.split_once("content-length: ").expect("a length");
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if asked.len() >= end + 4 + length {
            let body = String::from_utf8(asked[end + 4..].to_vec()).unwrap();
            break (head, body);
        }
    };
    let status = {
        let mut seen = seen.lock();
        seen.heads.push(head);
        if seen.answers.is_empty() {
            seen.bodies.push(body);
            "200 OK"
        } else {
            seen.answers.remove(0)
        }
    };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes()).await.ok();
}

/// Returns the spans of a body. Any field outside of the protocol is an error.
fn spans(body: &str) -> Vec<Span> {
    let json: Value = serde_json::from_str(body).unwrap();
    has_only(&json, &["resourceSpans"]);
    let mut spans = Vec::new();
    for resource in items(&json["resourceSpans"]) {
        has_only(resource, &["resource", "scopeSpans"]);
        has_only(&resource["resource"], &["attributes"]);
        let attributes = items(&resource["resource"]["attributes"]);
        attributes.iter().for_each(check_attribute);
        for scope in items(&resource["scopeSpans"]) {
            has_only(scope, &["scope", "spans"]);
            has_only(&scope["scope"], &["name", "version"]);
            spans.extend(items(&scope["spans"]).iter().map(|span| {
                check_span(span);
                Span(span.clone())
            }));
        }
    }
    spans
}

fn check_span(span: &Value) {
    has_only(
        span,
        &[
            "traceId",
            "spanId",
            "parentSpanId",
            "name",
            "kind",
            "startTimeUnixNano",
            "endTimeUnixNano",
            "attributes",
            "flags",
            "status",
        ],
    );
    check_hex(&span["traceId"], 32);
    check_hex(&span["spanId"], 16);
    if !span["parentSpanId"].is_null() {
        check_hex(&span["parentSpanId"], 16);
    }
    assert!(!span["name"].as_str().unwrap().is_empty(), "{span}");
    assert!((1..=5).contains(&span["kind"].as_u64().unwrap()), "{span}");
    let nanos = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    let (start, end) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
    assert!(start < end && start > 1_600_000_000_000_000_000, "{span}");
    assert!(span["flags"].is_u64(), "{span}");
    has_only(&span["status"], &["code"]);
    items(&span["attributes"]).iter().for_each(check_attribute);
}

fn check_attribute(attribute: &Value) {
    has_only(attribute, &["key", "value"]);
    assert!(attribute["key"].is_string(), "{attribute}");
    let value = attribute["value"].as_object().unwrap();
    assert_eq!(value.len(), 1, "{attribute}");
    let (kind, value) = value.iter().next().unwrap();
    let is_sound = match kind.as_str() {
        "stringValue" => value.is_string(),
        "boolValue" => value.is_boolean(),
        // 64-bit numbers do not fit into JSON numbers.
        "intValue" => value.as_str().is_some_and(|it| it.parse::<i64>().is_ok()),
        _ => false,
    };
    assert!(is_sound, "{attribute}");
}

fn check_hex(id: &Value, digits: usize) {
    let id = id.as_str().unwrap();
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    assert!(id.len() == digits && id.bytes().all(is_digit), "{id}");
    assert!(id.bytes().any(|byte| byte != b'0'), "{id} is none");
}

fn has_only(value: &Value, names: &[&str]) {
    let fields = value.as_object().unwrap_or_else(|| panic!("{value}"));
    for name in fields.keys() {
        assert!(names.contains(&name.as_str()), "{name} in {value}");
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

impl Span {
    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    pub(crate) fn trace(&self) -> &str {
        self.0["traceId"].as_str().unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        self.0["spanId"].as_str().unwrap()
    }

    pub(crate) fn parent(&self) -> Option<&str> {
        self.0["parentSpanId"].as_str()
    }

    pub(crate) fn kind(&self) -> u64 {
        self.0["kind"].as_u64().unwrap()
    }

    pub(crate) fn is_error(&self) -> bool {
        self.0["status"]["code"] == 2
    }

    /// Returns the value of an attribute.
    pub(crate) fn says(&self, name: &str) -> Option<String> {
        let attributes = items(&self.0["attributes"]);
        let found = attributes.iter().find(|it| it["key"] == name)?;
        let value = found["value"].as_object()?.values().next()?;
        Some(value.as_str().map_or(value.to_string(), str::to_owned))
    }
}
