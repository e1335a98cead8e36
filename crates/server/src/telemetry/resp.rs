//! What is counted at the door that speaks the protocol of Redis.

use crate::doors::resp::command::{ALL, CommandKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tidegate::{DecidedBy, Throttled};

/// Commands, and one more for all that there are not.
const COMMANDS: usize = ALL.len() + 1;

/// What may come of `CL.THROTTLE`, and who decided it.
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

/// The first of those of shadow mode, which most servers never see.
const SHADOW: usize = 7;

/// What happened on one connection since it was last [added up](RespMetrics::add).
#[derive(Debug, Default)]
pub(crate) struct RespTally {
    commands: [u32; COMMANDS],
    outcomes: [u32; OUTCOMES.len()],
}

/// Commands by name, and what came of `CL.THROTTLE`, which has no policy to be counted under.
#[derive(Debug, Default)]
pub(crate) struct RespMetrics {
    /// Whether there is such a door; else all of this would be noise.
    is_open: AtomicBool,
    commands: [AtomicU64; COMMANDS],
    outcomes: [AtomicU64; OUTCOMES.len()],
}

impl RespTally {
    /// A command; `None` for one that there is not.
    #[inline]
    pub(crate) fn command(&mut self, kind: Option<CommandKind>) {
        let nth = kind.map_or(ALL.len(), |kind| kind as usize);
        if let Some(count) = self.commands.get_mut(nth) {
            *count = count.saturating_add(1);
        }
    }

    /// What came of a bucket that was asked; `None` where nobody could tell.
    #[inline]
    pub(crate) fn throttled(&mut self, throttled: Option<&Throttled>) {
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
    /// There is such a door.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Relaxed);
    }

    /// Adds what was tallied.
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
        if !self.is_open.load(Relaxed) {
            return Ok(());
        }
        let help = "Commands at the Redis protocol's door, by name.";
        let mut commands =
            encoder.encode_descriptor("resp_commands", help, None, MetricType::Counter)?;
        let names = ALL.iter().map(|spec| spec.name).chain(["unknown"]);
        for (name, counter) in names.zip(&self.commands) {
            let count = ConstCounter::new(counter.load(Relaxed));
            count.encode(commands.encode_family(&[("command", name)])?)?;
        }
        let help = "What came of CL.THROTTLE, and who decided it.";
        let mut throttled =
            encoder.encode_descriptor("throttle", help, None, MetricType::Counter)?;
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
