//! Any source, changed to one rate after the other.

use super::double::Double;
use super::etcd::Etcd;
use super::kit::{Program, SERVED, policies, policy};
use super::redis::{config as hash, connect, set};
use super::rules;
use serde_json::json;
use std::fmt;
use tidegate_redis_client::Connection;
use tidegate_testkit::redis::Server as Redis;

/// An amount per second or per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) amount: u64,
    pub(super) seconds: u64,
}

impl Rate {
    pub(super) fn a_second(amount: u64) -> Self {
        Self { amount, seconds: 1 }
    }

    pub(super) fn an_hour(amount: u64) -> Self {
        let seconds = 3600;
        Self { amount, seconds }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.seconds == 1 { "s" } else { "h" };
        write!(f, "{}/{unit}", self.amount)
    }
}

/// A source, and the handle for changing it.
pub(super) enum Origin {
    File,
    Keeper(Double),
    /// A keeper with limits of the Traefik plugin, which are per second.
    Limits(Double),
    Http(Double),
    Hash(Redis, Connection),
    RuleSets(Redis),
    Etcd(Box<Etcd>),
}

impl Origin {
    /// Returns one of each; etcd if it is installed.
    pub(super) async fn all() -> Vec<Self> {
        let redis = Redis::start();
        let connection = connect(&redis).await;
        let mut all = vec![
            Self::File,
            Self::Keeper(Double::unreachable().await),
            Self::Limits(Double::unreachable().await),
            Self::Http(Double::unreachable().await),
            Self::Hash(redis, connection),
            Self::RuleSets(Redis::start()),
        ];
        all.extend(Etcd::start().await.map(|etcd| Self::Etcd(Box::new(etcd))));
        all
    }

    /// Returns its name and its policy.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Keeper(_) => "keeper",
            Self::Limits(_) => "limits",
            Self::Http(_) => "http",
            Self::Hash(..) => "hash",
            Self::RuleSets(_) => "rule-sets",
            Self::Etcd(_) => "etcd",
        }
    }

    /// Starts the program with this source at `rate`, and `more` in its file.
    pub(super) async fn start(&self, rate: Rate, more: &str) -> Program {
        self.say(1, rate).await;
        Program::start(&format!("{}\n{more}", self.config(rate))).await
    }

    /// Changes its rate, and waits until that is served.
    pub(super) async fn change(&self, program: &mut Program, nth: u64, rate: Rate, more: &str) {
        self.say(nth, rate).await;
        if let Self::File = self {
            program.write(&format!("{}\n{more}", self.config(rate)));
            program.process.signal("HUP").await;
        }
        while program.band(self.name()).await != rate.to_string() {
            if let Self::File = self {
                let reloaded = "config reloaded";
                program.process.logs(reloaded, ("level", "INFO")).await;
            } else {
                program.process.logs(SERVED, ("source", self.name())).await;
            }
        }
    }

    /// Returns its part of the file.
    fn config(&self, rate: Rate) -> String {
        let name = self.name();
        let named =
            |text: String| text.replacen("sources: [{", &format!("sources: [{{ name: {name},"), 1);
        let keeper = |it: &Double, format: &str| {
            let address = it.address;
            let key = "key: rates";
            named(format!(
                "sources: [{{ keeper: {{ url: 'http://{address}', {key}, {format} }}, refresh: 100ms }}]"
            ))
        };
        match self {
            Self::File => policies(name, &rate.to_string()),
            Self::Keeper(it) => keeper(it, "format: tidegate"),
            Self::Limits(it) => keeper(it, &format!("policy: {name}")),
            Self::Http(it) => {
                let url = format!("http://{}/", it.address);
                named(format!(
                    "sources: [{{ http: {{ url: '{url}' }}, refresh: 100ms }}]"
                ))
            }
            Self::Hash(redis, _) => named(hash(redis, "200ms")),
            Self::RuleSets(redis) => named(rules::config(redis, "200ms")),
            Self::Etcd(etcd) => named(etcd.config("1h")),
        }
    }

    async fn say(&self, nth: u64, rate: Rate) {
        let (name, text) = (self.name(), rate.to_string());
        let kept = |value: String| {
            json!({ "value": value, "version": nth, "mod_revision": nth }).to_string()
        };
        match self {
            Self::File => {}
            Self::Keeper(it) => it.say(None, &kept(policies(name, &text))),
            Self::Limits(it) => {
                let rules = json!([{ "urlpathpattern": "/**" }]);
                let limits = json!({ "limits": [{ "rules": rules, "limit": rate.amount }] });
                it.say(None, &kept(limits.to_string()));
            }
            Self::Http(it) => it.say(Some(&format!("\"{nth}\"")), &policies(name, &text)),
            Self::Hash(_, connection) => {
                set(connection, name, &text).await;
            }
            Self::RuleSets(redis) => rules::save(redis, name, (rate.amount, rate.seconds)),
            Self::Etcd(etcd) => {
                etcd.set(&format!("policy/{name}"), &policy(name, &text))
                    .await;
            }
        }
    }
}
