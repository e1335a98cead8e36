use crate::world::{Hello, ONE_EACH, TWO, get, limiter, statuses};
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;
use tracing_subscriber::fmt::MakeWriter;

/// The log, line by line.
#[derive(Clone)]
struct Lines(mpsc::Sender<String>);

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.0.send(text).expect("the test reads it");
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

/// Returns the log of three requests without a peer address.
async fn warnings(layer: RateLimitLayer<crate::world::ManualStore>) -> Vec<String> {
    let (sent, lines) = mpsc::channel();
    let logs = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Lines(sent));
    let logging = tracing::subscriber::set_default(logs.finish());
    // Clones, and services of a layer, do not log it again.
    let (one, other) = (
        layer.layer(Hello::default()),
        layer.clone().layer(Hello::default()),
    );
    statuses(&one, [get(), get()]).await;
    statuses(&other, [get()]).await;
    drop(logging);
    lines.try_iter().collect()
}

fn policy(limit: &str) -> RateLimitLayer<crate::world::ManualStore> {
    let text = format!("policies: [{{ name: api, limits: [{{ name: a, rate: 1/h, {limit} }}] }}]");
    RateLimitLayer::new(limiter(&text))
}

#[tokio::test]
async fn a_missing_peer_warns_once_if_limits_use_addresses() {
    for layer in [
        RateLimitLayer::new(limiter(ONE_EACH)),
        policy("match: { client: 192.0.2.0/24 }"),
        policy("key: user"),
        policy("key: [path, 'header:x-tenant'], mode: shadow"),
        // A function that returns nothing does not help.
        RateLimitLayer::new(limiter(ONE_EACH)).peer(|_| None),
    ] {
        let said = warnings(layer).await;
        let [line] = &said[..] else {
            panic!("not one line: {said:?}");
        };
        assert!(line.contains(" WARN "), "{line}");
        assert!(line.contains("client_address_missing"), "{line}");
        assert!(line.contains("policy=\"api\""), "{line}");
    }
}

#[tokio::test]
async fn a_missing_peer_does_not_warn_without_address_limits() {
    for layer in [
        RateLimitLayer::new(limiter(TWO)),
        policy("key: user, missing: skip"),
        policy("key: [method, host, path]"),
        policy("key: ip, mode: off"),
        RateLimitLayer::new(limiter(ONE_EACH)).peer(|_| Some(Ipv4Addr::LOCALHOST.into())),
    ] {
        assert_eq!(warnings(layer).await, [""; 0]);
    }
}
