//! Statistics of limits, sent to a statsd server as envoyproxy/ratelimit sends them.
//!
//! | module | what it is |
//! |---|---|
//! | this one | flushes the counts since the last flush, periodically |
//! | `line` | formatting of a statistic |
//! | `sink` | the connection to the server |
//! | `metrics` | outcomes of packets |

mod line;
mod metrics;
mod sink;

#[cfg(test)]
mod tests;

pub(crate) use metrics::StatsdMetrics;

use super::decisions::{DecisionMetrics, StatisticIncrease};
use line::StatsdLines;
use sink::Sink;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::statsd::Statsd;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The maximum time of the last flush.
const FAREWELL: Duration = Duration::from_secs(1);

/// The consecutive flushes without an error after which the server counts as reachable again. Of two
/// datagrams to a closed port, the first is sent without an error, and the second gets the error of the
/// first.
const RECOVERED_AFTER: u32 = 3;

/// The sender of statistics. None of its work is on the path of a request.
#[derive(Debug)]
pub struct Outlet {
    interval: Duration,
    decisions: Arc<DecisionMetrics>,
    /// Locked during a flush.
    sender: Mutex<Sender>,
}

#[derive(Debug)]
struct Sender {
    lines: StatsdLines,
    sink: Sink,
    metrics: StatsdMetrics,
    /// After a failure: the flushes since, each of which sent something without an error.
    failing: Option<u32>,
    /// True if a line was too long: only the first is logged.
    has_dropped: bool,
}

/// A packet, and the statistics in it.
///
/// When dropped, it settles the statistics that the system has accepted, even in part: the server may have
/// them. So a flush that fails or is cancelled sends none of them twice, and all others stay pending.
#[derive(Debug, Default)]
struct Packet {
    text: String,
    /// Each statistic with the offset of its line.
    statistics: Vec<(usize, StatisticIncrease)>,
    /// The number of bytes that the system has accepted.
    taken: usize,
}

impl Drop for Packet {
    fn drop(&mut self) {
        for (begins_at, statistic) in &self.statistics {
            if *begins_at < self.taken {
                statistic.record_sent();
            }
        }
    }
}

impl Outlet {
    /// Creates a sender with these settings.
    pub fn new(
        settings: &Statsd,
        decisions: Arc<DecisionMetrics>,
        metrics: StatsdMetrics,
    ) -> Arc<Self> {
        metrics.begin();
        Arc::new(Self {
            interval: settings.interval,
            decisions,
            sender: Mutex::new(Sender {
                lines: StatsdLines::new(settings),
                sink: Sink::new(&settings.address, settings.protocol),
                metrics,
                failing: None,
                has_dropped: false,
            }),
        })
    }

    /// Flushes at every interval, until cancelled.
    pub async fn run(&self) {
        loop {
            sleep(self.interval).await;
            self.flush().await;
        }
    }

    /// Flushes once more, for at most `FAREWELL`.
    pub async fn finish(&self) {
        timeout(FAREWELL, self.flush()).await.ok();
    }

    async fn flush(&self) {
        // Read under the lock: another flush may be sending the same counts.
        let mut sender = self.sender.lock().await;
        sender.flush(self.decisions.pending()).await;
    }
}

impl Sender {
    /// Sends `pending`. Statistics that cannot be sent stay pending for the next flush.
    async fn flush(&mut self, pending: Vec<StatisticIncrease>) {
        let packets = self.packets(pending);
        let is_empty = packets.is_empty();
        for mut packet in packets {
            let Packet { text, taken, .. } = &mut packet;
            match self.sink.send(text.as_bytes(), taken).await {
                Ok(()) => self.metrics.sent(),
                Err(error) => {
                    self.metrics.failed();
                    self.failed(&error);
                    return;
                }
            }
        }
        if !is_empty {
            self.succeeded();
        }
    }

    /// Writes statistics into as few packets as possible.
    fn packets(&mut self, pending: Vec<StatisticIncrease>) -> Vec<Packet> {
        let mut packets: Vec<Packet> = Vec::new();
        let mut line = String::new();
        for statistic in pending {
            line.clear();
            self.lines.write(&mut line, &statistic);
            let room = self.sink.packet_max().checked_sub(line.len());
            let Some(room) = room else {
                self.drop_line(&statistic, line.len());
                continue;
            };
            let packet = match packets.last_mut() {
                Some(packet) if packet.text.len() <= room => packet,
                _ => packets.push_mut(Packet::default()),
            };
            packet.statistics.push((packet.text.len(), statistic));
            packet.text.push_str(&line);
        }
        packets
    }

    /// Drops a statistic that fits into no packet. A truncated line would name another statistic.
    fn drop_line(&mut self, statistic: &StatisticIncrease, bytes: usize) {
        statistic.record_sent();
        self.metrics.dropped();
        if !std::mem::replace(&mut self.has_dropped, true) {
            warn!(
                event = "statsd_line_too_long",
                name = &*statistic.key,
                bytes,
                bytes_max = self.sink.packet_max(),
                "a statsd line is too long; dropping it and others like it"
            );
        }
    }

    fn succeeded(&mut self) {
        let Some(flushes) = &mut self.failing else {
            return;
        };
        *flushes = flushes.saturating_add(1);
        if *flushes >= RECOVERED_AFTER {
            self.failing = None;
            info!(
                event = "statsd_recovered",
                address = self.sink.address(),
                "statsd reachable again"
            );
        }
    }

    fn failed(&mut self, error: &std::io::Error) {
        if self.failing.replace(0).is_none() {
            warn!(
                event = "statsd_failed",
                address = self.sink.address(),
                %error,
                "cannot send to statsd; retrying at every flush"
            );
        }
    }
}
