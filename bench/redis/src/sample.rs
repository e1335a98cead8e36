//! One repetition: the number of decisions, and their costs.

use std::time::Duration;

use crate::server::{MeasuredServer, Reading};
use crate::usage;

/// The result of one repetition.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(crate) struct Sample {
    pub(crate) decisions: f64,
    pub(crate) seconds: f64,
    pub(crate) per_s: f64,
    /// Processor time of Redis per decision.
    pub(crate) redis_us: f64,
    /// The utilization of Redis' core.
    pub(crate) redis_busy: f64,
    /// Processor time of the client per decision, if this process is the client.
    pub(crate) client_us: Option<f64>,
    pub(crate) bytes_in: f64,
    pub(crate) bytes_out: f64,
    /// Calls to Redis per decision.
    pub(crate) calls: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// The share of the time for which Redis or the client was ready but had no core.
    pub(crate) stolen: f64,
}

/// The work during a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) decisions: f64,
    pub(crate) elapsed: Duration,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// True if this process was the client.
    pub(crate) here: bool,
}

/// Reads all clocks and counters at the beginning and at the end.
pub(crate) struct Meter<'a> {
    server: &'a MeasuredServer,
    before: Reading,
    cpu_s: f64,
    waited_s: f64,
}

impl<'a> Meter<'a> {
    pub(crate) fn start(server: &'a MeasuredServer) -> anyhow::Result<Self> {
        Ok(Self {
            server,
            before: server.read()?,
            cpu_s: usage::cpu_s(),
            waited_s: usage::waited_s("self"),
        })
    }

    pub(crate) fn stop(self, work: &Work) -> anyhow::Result<Sample> {
        let client_s = usage::cpu_s() - self.cpu_s;
        let client_waited_s = usage::waited_s("self") - self.waited_s;
        let (before, after) = (self.before, self.server.read()?);
        let seconds = work.elapsed.as_secs_f64();
        let each = |from: f64, to: f64| (to - from) / work.decisions;
        Ok(Sample {
            decisions: work.decisions,
            seconds,
            per_s: work.decisions / seconds,
            redis_us: each(before.cpu_s, after.cpu_s) * 1e6,
            redis_busy: (after.cpu_s - before.cpu_s) / seconds,
            client_us: work.here.then(|| client_s / work.decisions * 1e6),
            bytes_in: each(before.bytes_in, after.bytes_in),
            bytes_out: each(before.bytes_out, after.bytes_out),
            calls: each(before.calls, after.calls),
            p50_us: work.p50_us,
            p99_us: work.p99_us,
            stolen: (after.waited_s - before.waited_s).max(client_waited_s) / seconds,
        })
    }
}

/// Returns a percentile; sorts the values.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1)) as f64 * share;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let at = at as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
