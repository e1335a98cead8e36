//! Statistics of limits, sent to a statsd server as envoyproxy/ratelimit sends them.
//!
//! | module | what it is |
//! |---|---|
//! | this one | flushes what was counted since the last flush, now and then |
//! | `line` | how a statistic is written |
//! | `sink` | the connection to the server |
//! | `metrics` | what became of packets |

mod line;
mod metrics;
mod sink;

#[cfg(test)]
mod tests;

pub(crate) use metrics::StatsdMetrics;

use super::decisions::{Decisions, Pending};
use line::Lines;
use sink::Sink;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::statsd::Statsd;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The time that the last flush may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Sends statistics. Nothing of it is on the path of a request.
#[derive(Debug)]
pub(crate) struct Outlet {
    interval: Duration,
    decisions: Arc<Decisions>,
    /// Locked during a flush.
    sender: Mutex<Sender>,
}

#[derive(Debug)]
struct Sender {
    lines: Lines,
    sink: Sink,
    metrics: StatsdMetrics,
    /// Whether the last flush failed: the log has it once.
    is_failing: bool,
}

/// A packet, and the statistics in it.
#[derive(Debug, Default)]
struct Packet {
    text: String,
    statistics: Vec<Pending>,
}

impl Outlet {
    pub(crate) fn new(
        settings: &Statsd,
        decisions: Arc<Decisions>,
        metrics: StatsdMetrics,
    ) -> Arc<Self> {
        metrics.begin();
        Arc::new(Self {
            interval: settings.interval,
            decisions,
            sender: Mutex::new(Sender {
                lines: Lines::new(settings),
                sink: Sink::new(&settings.address, settings.protocol),
                metrics,
                is_failing: false,
            }),
        })
    }

    /// Flushes at every interval, for as long as it runs.
    pub(crate) async fn run(&self) {
        loop {
            sleep(self.interval).await;
            self.flush().await;
        }
    }

    /// Flushes once more, unless that takes long.
    pub(crate) async fn finish(&self) {
        timeout(FAREWELL, self.flush()).await.ok();
    }

    async fn flush(&self) {
        let pending = self.decisions.pending();
        self.sender.lock().await.flush(pending).await;
    }
}

impl Sender {
    /// Sends `pending`. Statistics that cannot be sent stay pending: the next flush has them.
    async fn flush(&mut self, pending: Vec<Pending>) {
        for packet in self.packets(pending) {
            match self.sink.send(packet.text.as_bytes()).await {
                Ok(()) => {
                    packet.statistics.iter().for_each(Pending::settle);
                    self.metrics.sent();
                    self.recovered();
                }
                Err(error) => {
                    self.metrics.failed();
                    self.failed(&error);
                    return;
                }
            }
        }
    }

    /// Writes statistics into as few packets as they fit in.
    fn packets(&self, pending: Vec<Pending>) -> Vec<Packet> {
        let mut packets = vec![Packet::default()];
        let mut line = String::new();
        for statistic in pending {
            line.clear();
            self.lines.write(&mut line, &statistic);
            let fits = packets.last().is_some_and(|packet| {
                let length = packet.text.len().saturating_add(line.len());
                packet.text.is_empty() || length <= self.sink.packet_max()
            });
            if !fits {
                packets.push(Packet::default());
            }
            if let Some(packet) = packets.last_mut() {
                packet.text.push_str(&line);
                packet.statistics.push(statistic);
            }
        }
        packets.retain(|packet| !packet.text.is_empty());
        packets
    }

    fn recovered(&mut self) {
        if self.is_failing {
            self.is_failing = false;
            info!(address = self.sink.address(), "statsd reachable again");
        }
    }

    fn failed(&mut self, error: &std::io::Error) {
        if !self.is_failing {
            self.is_failing = true;
            warn!(
                address = self.sink.address(),
                %error,
                "cannot send statistics to statsd; counting on and trying again at every flush"
            );
        }
    }
}
