//! The instances that share the store, and a comparison of their configurations.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use tidegate::shared_state::{Instance, Roll, SharedInstances};
use tidegate::{Limiter, Store};

/// The configuration of an instance compared with this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfigComparison {
    Same,
    Other,
    /// The instance does not report its configuration, or this one does not.
    Unknown,
}

impl ConfigComparison {
    const ALL: [Self; 3] = [Self::Same, Self::Other, Self::Unknown];

    fn of(roll: &Roll, instance: &Instance) -> Self {
        match (own(roll), version(instance)) {
            (Some(own), Some(its)) if own == its => Self::Same,
            (Some(_), Some(_)) => Self::Other,
            _ => Self::Unknown,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns the configuration version that an instance reports.
pub fn version(instance: &Instance) -> Option<&str> {
    instance.serves.as_ref().map(|it| it.version.as_str())
}

/// Returns the configuration version that this instance has reported to the others.
fn own(roll: &Roll) -> Option<&str> {
    let own = roll.instances.iter().find(|it| it.is_this);
    own.and_then(version)
}

/// Returns true if all instances that report a version report this one's; `None` while this one reports none.
pub fn agree(roll: &Roll) -> Option<bool> {
    let own = own(roll)?;
    let mut versions = roll.instances.iter().filter_map(version);
    Some(versions.all(|it| it == own))
}

/// The number of instances with this one's configuration and with another, as last seen. Absent while the
/// other instances cannot be seen.
#[derive(Debug)]
pub(super) struct InstanceMetrics<S>(pub(super) Limiter<S>);

impl<S: Store + fmt::Debug + 'static> Collector for InstanceMetrics<S> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(roll) = self.0.instances().and_then(SharedInstances::last_roll) else {
            return Ok(());
        };
        let help = "Instances that share the store, including this one, by whether their config matches \
             this instance.";
        let mut family = encoder.encode_descriptor("instances", help, None, MetricType::Gauge)?;
        for beside in ConfigComparison::ALL {
            let such = roll.instances.iter();
            let such = such
                .filter(|it| ConfigComparison::of(&roll, it) == beside)
                .count();
            let labels = [("configuration", beside.word())];
            let such = i64::try_from(such).unwrap_or(i64::MAX);
            ConstGauge::new(such).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate::shared_state::InstanceConfig;

    /// Returns a roll with this instance first, then others.
    fn roll(versions: &[Option<&str>]) -> Roll {
        let instances = versions.iter().enumerate().map(|(nth, version)| Instance {
            name: nth.to_string(),
            is_this: nth == 0,
            heard: Duration::ZERO,
            serves: version.map(|version| InstanceConfig {
                version: version.to_owned(),
                program: "0.1.0".to_owned(),
                zones: None,
                since: Duration::ZERO,
            }),
        });
        Roll {
            instances: instances.collect(),
        }
    }

    #[test]
    fn an_instance_without_a_version_neither_agrees_nor_differs() {
        for (versions, agrees, beside) in [
            (&[Some("a")][..], Some(true), &["same"][..]),
            (
                &[Some("a"), Some("a"), None],
                Some(true),
                &["same", "same", "unknown"],
            ),
            (
                &[Some("a"), None, Some("b")],
                Some(false),
                &["same", "unknown", "other"],
            ),
            (&[None, Some("a"), Some("a")], None, &["unknown"; 3]),
            (&[None, Some("a"), Some("b")], None, &["unknown"; 3]),
            (&[None], None, &["unknown"]),
            (&[], None, &[]),
        ] {
            let roll = roll(versions);
            assert_eq!(agree(&roll), agrees, "{versions:?}");
            let each = roll.instances.iter();
            let each: Vec<&str> = each
                .map(|it| ConfigComparison::of(&roll, it).word())
                .collect();
            assert_eq!(each, beside, "{versions:?}");
        }
    }
}
