//! The data of a master.

use super::clock::Offset;
use super::info::Info;
use super::latency::Latencies;
use std::collections::BTreeMap;
use tidegate_redis_client::Address;

/// The settings to query.
pub(super) const SETTINGS: [&str; 8] = [
    "appendfsync",
    "save",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "cluster-node-timeout",
    "cluster-require-full-coverage",
    "maxmemory",
    "maxmemory-policy",
];

/// The data of a master.
#[derive(Debug)]
pub(super) struct NodeExam {
    pub(super) address: Address,
    /// The number of slots of a Cluster that it serves.
    pub(super) slots: usize,
    /// `None` if the user lacks the permission.
    pub(super) info: Option<Info>,
    /// The settings that could be read.
    pub(super) settings: BTreeMap<&'static str, String>,
    pub(super) offset: Option<Offset>,
    pub(super) ping: Option<Latencies>,
    pub(super) script: Option<Latencies>,
}

impl NodeExam {
    /// Returns a setting, if it could be read.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }

    /// Returns a field of `INFO`.
    pub(super) fn info_field(&self, name: &str) -> Option<&str> {
        self.info.as_ref()?.get(name)
    }

    pub(super) fn info_number(&self, name: &str) -> Option<u64> {
        self.info.as_ref()?.number(name)
    }
}

#[cfg(test)]
impl NodeExam {
    /// Returns a node with this data, for tests.
    pub(super) fn saying(info: &str, settings: &[(&'static str, &str)]) -> Self {
        Self {
            address: Address::new("a", 1),
            slots: 0,
            info: Some(Info::new(info)),
            settings: settings
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            offset: None,
            ping: None,
            script: None,
        }
    }
}
