//! Outcomes of fetching config sources, and their status.

use crate::source_health::{FetchOutcome, SourceHealthList, SourceView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt;
use std::sync::Arc;

/// The most characters of a version that are shown: enough to compare.
const VERSION_MAX: usize = 32;

/// The config sources, by their names in the configuration.
#[derive(Debug)]
pub(super) struct SourceMetrics(pub(super) Arc<SourceHealthList>);

impl Collector for SourceMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sources = self.0.sources();
        if sources.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "source_loads",
            "Loads of config sources by outcome.",
            None,
            MetricType::Counter,
        )?;
        for source in &sources {
            for (outcome, count) in source.counts() {
                let labels = [
                    ("source", source.name()),
                    ("outcome", FetchOutcome::word(outcome)),
                ];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let standings: Vec<SourceView> = sources.iter().map(|it| it.status()).collect();
        let age = encoder.encode_descriptor(
            "source_age",
            "Time since a config source last responded.",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        gauges(age, &standings, |it| it.age.map(|age| whole(age.as_secs())))?;
        let stale = encoder.encode_descriptor(
            "source_stale",
            "1 if the last load of a config source failed, else 0.",
            None,
            MetricType::Gauge,
        )?;
        gauges(stale, &standings, |it| Some(i64::from(it.is_stale)))?;
        let refused = encoder.encode_descriptor(
            "source_rejected",
            "1 if the current version of a config source was rejected and the previous one is \
             served, else 0.",
            None,
            MetricType::Gauge,
        )?;
        gauges(refused, &standings, |it| Some(i64::from(it.is_refused)))?;
        versions(&mut encoder, &standings)
    }
}

/// Encodes one series for each source: an old version disappears when another replaces it.
fn versions(encoder: &mut DescriptorEncoder<'_>, standings: &[SourceView]) -> fmt::Result {
    let help = "Version of a config source that is served.";
    let mut family = encoder.encode_descriptor("source_version", help, None, MetricType::Info)?;
    for standing in standings {
        let version = match (&standing.version, standing.is_fallback) {
            (_, true) => "fallback",
            (Some(version), _) => version,
            (None, _) => continue,
        };
        let version: String = version.chars().take(VERSION_MAX).collect();
        let labels = [
            ("source", standing.name.as_str()),
            ("version", version.as_str()),
        ];
        family.encode_info(&labels)?;
    }
    Ok(())
}

fn gauges(
    mut family: MetricEncoder<'_>,
    standings: &[SourceView],
    value: impl Fn(&SourceView) -> Option<i64>,
) -> fmt::Result {
    for standing in standings {
        if let Some(value) = value(standing) {
            let labels = [("source", standing.name.as_str())];
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
