//! Metrics of the frontend for the Redis protocol.

use super::command::{ALL, CommandKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, ThrottleOutcome};

/// The number of commands, and one more for all unknown commands.
const COMMANDS: usize = ALL.len() + 1;

/// The outcomes of `CL.THROTTLE`, with the decider.
const OUTCOMES: [(&str, &str); 10] = [
    ("allowed", "store"),
    ("refused", "store"),
    ("allowed", "local"),
    ("refused", "local"),
    ("allowed", "failure"),
    ("refused", "failure"),
    ("error", "failure"),
    ("shadow_refused", "store"),
    ("shadow_refused", "local"),
    ("shadow_refused", "failure"),
];

/// The index of the first outcome of shadow mode, which most servers never see.
const SHADOW: usize = 7;

/// The counts of one connection since they were last [added](RespMetrics::add).
#[derive(Debug, Default)]
pub(crate) struct RespTally {
    commands: [u32; COMMANDS],
    outcomes: [u32; OUTCOMES.len()],
}

/// Commands by name, and outcomes of `CL.THROTTLE`, which has no policy to be counted under.
#[derive(Debug, Default)]
pub(crate) struct RespMetrics {
    commands: [AtomicU64; COMMANDS],
    outcomes: [AtomicU64; OUTCOMES.len()],
}

impl RespTally {
    /// Counts a command; `None` is an unknown command.
    #[inline]
    pub(crate) fn command(&mut self, kind: Option<CommandKind>) {
        let nth = kind.map_or(ALL.len(), |kind| kind as usize);
        if let Some(count) = self.commands.get_mut(nth) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts the outcome of a throttled bucket; `None` if there was no decision.
    #[inline]
    pub(crate) fn throttled(&mut self, throttled: Option<&ThrottleOutcome>) {
        let nth = match throttled {
            None => 6,
            Some(throttled) => {
                let decider = match throttled.decided_by {
                    DecidedBy::Store => 0,
                    DecidedBy::Local => 1,
                    _ => 2,
                };
                match throttled.outcome.is_allowed() {
                    false if throttled.is_shadow => SHADOW + decider,
                    is_allowed => 2 * decider + usize::from(!is_allowed),
                }
            }
        };
        if let Some(count) = self.outcomes.get_mut(nth) {
            *count = count.saturating_add(1);
        }
    }
}

impl RespMetrics {
    /// Adds the counts of a connection.
    pub(crate) fn add(&self, tally: &RespTally) {
        add(&self.commands, &tally.commands);
        add(&self.outcomes, &tally.outcomes);
    }
}

fn add(counters: &[AtomicU64], tallied: &[u32]) {
    for (counter, count) in counters.iter().zip(tallied) {
        if *count > 0 {
            counter.fetch_add(u64::from(*count), Relaxed);
        }
    }
}

impl Collector for RespMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Commands of the Redis protocol, by name.";
        let mut commands =
            encoder.encode_descriptor("resp_commands", help, None, MetricType::Counter)?;
        let names = ALL.iter().map(|spec| spec.name).chain(["unknown"]);
        for (name, counter) in names.zip(&self.commands) {
            let count = ConstCounter::new(counter.load(Relaxed));
            count.encode(commands.encode_family(&[("command", name)])?)?;
        }
        let help = "CL.THROTTLE decisions by outcome and decider.";
        let mut throttled =
            encoder.encode_descriptor("throttle_decisions", help, None, MetricType::Counter)?;
        let outcomes = OUTCOMES.iter().zip(&self.outcomes).enumerate();
        for (nth, ((outcome, decided_by), counter)) in outcomes {
            let count = counter.load(Relaxed);
            if nth >= SHADOW && count == 0 {
                continue;
            }
            let labels = [("outcome", *outcome), ("decided_by", *decided_by)];
            ConstCounter::new(count).encode(throttled.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
