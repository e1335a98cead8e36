//! Log lines that were dropped because standard error was not read fast enough.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;

/// The metric of dropped log lines. Its function returns their number since the start of the program.
#[derive(Debug)]
pub struct DroppedLogLines(pub fn() -> u64);

impl Collector for DroppedLogLines {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Log lines dropped because standard error was not read fast enough.";
        let counter = ConstCounter::new((self.0)());
        let metric_type = counter.metric_type();
        counter.encode(encoder.encode_descriptor("log_lines_dropped", help, None, metric_type)?)
    }
}
