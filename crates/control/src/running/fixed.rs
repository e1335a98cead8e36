//! The settings that only a restart changes: listen addresses, and the store.

use tidegate::Config;
use tidegate_config::alerts::Alerts;
use tidegate_config::statsd::Statsd;
use tidegate_config::traces::{Logs, Traces};
use tidegate_policy::listen::Listen;
use tidegate_policy::store::{LayoutWord, StoreSettings};

/// The settings that a server was started with, and keeps as long as it runs.
#[derive(Debug)]
pub(super) struct StartupSettings {
    listen: Listen,
    store: StoreSettings,
    alerts: Option<Alerts>,
    traces: Option<Traces>,
    statsd: Option<Statsd>,
    logs: Logs,
}

impl StartupSettings {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            listen: config.listen.clone(),
            store: config.store.clone(),
            alerts: config.alerts.clone(),
            traces: config.traces.clone(),
            statsd: config.statsd.clone(),
            logs: config.logs.clone(),
        }
    }

    /// Returns the names of the settings in which `config` differs. Fails if the running server cannot
    /// apply it at all.
    pub(super) fn differences(&self, config: &Config) -> Result<Vec<&'static str>, &'static str> {
        let (listen, store) = (&self.listen, &self.store);
        if is_open(store) && !is_open(&config.store) {
            // Its limits do not define the names of their keys, and would be counted under others.
            return Err(
                "the store keeps its keys in the open layout, and this configuration does not say how \
                 to name them\n   help: keep `store.redis.layout: open`, or restart",
            );
        }
        let settings = [
            ("listen.http", listen.http != config.listen.http),
            ("listen.grpc", listen.grpc != config.listen.grpc),
            ("listen.gateway", listen.gateway != config.listen.gateway),
            ("listen.admin", listen.admin != config.listen.admin),
            ("listen.resp", listen.resp != config.listen.resp),
            ("alerts", self.alerts != config.alerts),
            ("traces", self.traces != config.traces),
            ("statsd", self.statsd != config.statsd),
            ("logs", self.logs != config.logs),
            ("store", store.target != config.store.target),
            ("store.timeout", store.timeout != config.store.timeout),
            ("store.max_keys", store.max_keys != config.store.max_keys),
            ("store.snapshot", store.snapshot != config.store.snapshot),
        ];
        let differing = settings.into_iter().filter(|(_, differs)| *differs);
        Ok(differing.map(|(name, _)| name).collect())
    }
}

fn is_open(store: &StoreSettings) -> bool {
    let redis = store.target.redis();
    redis.is_some_and(|redis| redis.layout == LayoutWord::Open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &str) -> Config {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        Config::from_yaml(&format!("{settings}\n{policies}")).unwrap()
    }

    fn differences(before: &str, after: &str) -> Result<Vec<&'static str>, &'static str> {
        StartupSettings::of(&config(before)).differences(&config(after))
    }

    #[test]
    fn only_settings_that_need_a_restart_are_named() {
        for (before, after, expected) in [
            ("", "", &[][..]),
            ("", "client: { trusted_proxies: [10.0.0.0/8] }", &[]),
            (
                "store: { on_failure: local, key_secret: one }",
                "store: { on_failure: deny, key_secret: another }",
                &[],
            ),
            ("", "listen: { http: 127.0.0.1:8081 }", &["listen.http"]),
            (
                "listen: { http: 127.0.0.1:1 }",
                "listen: { http: { address: 127.0.0.1:1, token: secret } }",
                &["listen.http"],
            ),
            (
                "",
                "listen: { admin: 127.0.0.1:1, http: 127.0.0.1:8080 }\nstore: { max_keys: 5 }",
                &["listen.admin", "store.max_keys"],
            ),
            (
                "",
                "store: { url: 'redis://127.0.0.1', timeout: 5ms }",
                &["store", "store.timeout"],
            ),
        ] {
            assert_eq!(
                differences(before, after).as_deref(),
                Ok(expected),
                "{after}"
            );
        }
    }

    #[test]
    fn open_layout_keys_always_have_names() {
        let open = "store: { url: 'redis://127.0.0.1', redis: { layout: open } }";
        let packed = "store: { url: 'redis://127.0.0.1' }";
        assert!(differences(open, packed).unwrap_err().contains("layout"));
        assert!(differences(open, "").is_err());
        // In the other direction the names are not checked.
        assert_eq!(differences(packed, open), Ok(vec!["store"]));
        assert_eq!(differences(open, open), Ok(vec![]));
    }
}
