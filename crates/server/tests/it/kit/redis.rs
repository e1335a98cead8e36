//! Configurations for real servers, and decisions that leave data in them.

use super::folder::Folder;
use super::process::{ProcessEnd, run, tidegate};
use std::net::{IpAddr, Ipv4Addr};
use tidegate::{AnyStore, Config, Limiter, Request};
use tidegate_config::NoEnvironment;

/// Returns limits of every kind that operators use, in a store that `store` describes. The timeout
/// is long enough for a busy machine.
pub(crate) fn config(store: &str) -> String {
    format!(
        "
store: {{ {store}, timeout: 10s }}
policies:
  - name: api
    limits:
      - {{ name: per-client, key: ip, rate: 1/min burst 50 }}
      - name: per-user
        key: user
        missing: skip
        bands: [{{ rate: 10/min, label: m }}, {{ rate: 100/h, label: h }}]
      - {{ name: per-key, key: api-key, missing: skip, rate: 5/min }}
"
    )
}

/// Returns limits of every algorithm, and one whose names are too long to be stored unchanged.
pub(crate) fn every_algorithm(store: &str) -> String {
    format!(
        "
store: {{ {store}, timeout: 10s }}
policies:
  - name: api
    limits:
      - {{ name: tokens, key: ip, rate: 10/min burst 50 }}
      - name: bands
        key: [route, user]
        bands: [{{ rate: 10/min, label: m }}, {{ rate: 100/h, label: h }}]
      - {{ name: fixed, key: user, algorithm: fixed-window, rate: 10/min }}
      - {{ name: sliding, key: ip, algorithm: sliding-window, rate: 10/min }}
      - {{ name: log, key: ip, algorithm: sliding-log, rate: 10/min }}
      - {{ name: parts, key: user, algorithm: bucketed-window, rate: 10/min }}
      - {{ name: all, rate: 1000/min }}
      - {{ name: secret, key: api-key, rate: 10/min }}
      - {{ name: long, key: ['header:a', 'header:b', 'header:c'], algorithm: bucketed-window, rate: 10/min }}
"
    )
}

/// A configuration in a file, and the program with it.
pub(crate) struct RunningConfig {
    folder: Folder,
    text: String,
}

impl RunningConfig {
    pub(crate) fn by(text: String) -> Self {
        let folder = Folder::make();
        Self { folder, text }
    }

    /// Runs the program with these arguments and the configuration.
    pub(crate) async fn run(&self, words: &[&str]) -> ProcessEnd {
        let file = self.folder.write("tidegate.yaml", &self.text);
        let words = [words, &["--config", &file]].concat();
        let mut command = tidegate(&words);
        command.env("USER", "ann").env("HOSTNAME", "gate-1");
        run(command).await
    }

    /// Runs it, and returns its JSON. It must succeed, or report that nothing is stored.
    pub(crate) async fn json(&self, words: &[&str]) -> serde_json::Value {
        let ended = self.run(&[words, &["--json"]].concat()).await;
        let seen = parsed(&ended);
        let code = if seen["found"] == false { 3 } else { 0 };
        assert_eq!(ended.status.code(), Some(code), "{}", ended.stderr);
        seen
    }

    /// Returns a limiter over the same store.
    pub(crate) async fn limiter(&self) -> Limiter<AnyStore> {
        let config = Config::parse(&self.text, "test.yaml", &NoEnvironment);
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        let limiter = Limiter::builder().config(config).connect().await;
        limiter.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Returns its output as JSON.
pub(crate) fn parsed(ended: &ProcessEnd) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// Returns the address of the nth client.
pub(crate) fn client(nth: u32) -> IpAddr {
    Ipv4Addr::from(0x0A00_0000 + nth).into()
}

/// Sends a request that is allowed.
pub(crate) async fn take(limiter: &Limiter<AnyStore>, request: Request<'_>) {
    let decision = limiter.check(&request).await.unwrap();
    assert!(decision.is_allowed(), "{decision:?}");
    assert_eq!(decision.decided_by().as_str(), "store");
}
