//! Candidates under `redis-benchmark`: a plain token bucket script, a module's command, `PING`.

use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};

use crate::compare::{Bench, Candidate};
use crate::sample::{Meter, Sample, Work};
use crate::server::MeasuredServer;

/// A token bucket in the form of the documents.
pub(crate) const SCRIPT: &str = include_str!("../plain.lua");
const FILL: &str = include_str!("../fill.lua");

/// The prefix of keys; twelve digits follow.
pub(crate) const PREFIX: &str = "ratelimit:api:";

/// The hot key.
const HOT: &str = "ratelimit:api:everybody";

/// The plain script's quota: so large that all pass, and the clock is constant, so that numbers
/// stay whole and short. Both are in its favour.
pub(crate) const RATE: u64 = 100;
pub(crate) const BURST: u64 = 1_000_000_000;
const LIFE_S: u64 = 600;

/// Keys that one call of the filling script makes.
const FILL_CHUNK: usize = 10_000;

/// Connections, and the calls in flight on each.
const CONNECTIONS: usize = 50;
const PIPELINE: usize = 64;

/// One command under `redis-benchmark -c 50 -P 64`.
pub(crate) struct Plain {
    name: String,
    command: Vec<String>,
    /// Its server, if that is not the server of the other candidates.
    server: Option<Rc<MeasuredServer>>,
    /// The range of random keys.
    keys: usize,
    calls_per_decision: f64,
    fills: bool,
    check: Check,
    /// Calls so far.
    calls: u64,
    calls_per_s: f64,
}

/// The check afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    NoErrors,
    /// The hot key has lost one token per call.
    Taken,
    /// The hot key has been empty for long.
    Empty,
}

impl Plain {
    fn new(name: &str, command: Vec<String>, keys: usize) -> Self {
        Self {
            name: name.to_owned(),
            command,
            server: None,
            keys,
            calls_per_decision: 1.0,
            fills: false,
            check: Check::NoErrors,
            calls: 0,
            calls_per_s: 100_000.0,
        }
    }

    /// Returns the floor: a call that does nothing.
    pub(crate) fn ping() -> Self {
        Self::new("PING", vec!["PING".to_owned()], 1)
    }

    /// The plain script on distinct keys.
    pub(crate) fn script(bench: &Bench) -> anyhow::Result<Self> {
        let command = script(bench, &format!("{PREFIX}__rand_int__"), BURST)?;
        Ok(Self {
            fills: true,
            ..Self::new("plain script", command, bench.keys)
        })
    }

    /// The plain script, once for each of three bands.
    pub(crate) fn three(bench: &Bench) -> anyhow::Result<Self> {
        let command = script(bench, &format!("{PREFIX}__rand_int__"), BURST)?;
        Ok(Self {
            fills: true,
            calls_per_decision: 3.0,
            ..Self::new("plain script, three times", command, bench.keys * 3)
        })
    }

    /// The plain script on one key.
    pub(crate) fn hot(bench: &Bench) -> anyhow::Result<Self> {
        Ok(Self {
            check: Check::Taken,
            ..Self::new("plain script", script(bench, HOT, BURST)?, 1)
        })
    }

    /// Returns the plain script on one key with nothing left.
    pub(crate) fn refused(bench: &Bench) -> anyhow::Result<Self> {
        Ok(Self {
            check: Check::Empty,
            ..Self::new("plain script", script(bench, HOT, 1)?, 1)
        })
    }

    /// Returns redis-cell, on a server with the module.
    pub(crate) fn cell(server: &Rc<MeasuredServer>, key: &str, quota: [&str; 3], keys: usize) -> Self {
        let words = ["CL.THROTTLE", key].into_iter().chain(quota).chain(["1"]);
        Self {
            server: Some(Rc::clone(server)),
            ..Self::new("redis-cell", words.map(str::to_owned).collect(), keys)
        }
    }

    fn server<'a>(&'a self, bench: &'a Bench) -> &'a MeasuredServer {
        self.server.as_deref().unwrap_or(&bench.server)
    }

    /// Makes `calls` calls; returns calls per second, and latencies in µs.
    fn run(&mut self, bench: &Bench, calls: u64) -> anyhow::Result<[f64; 3]> {
        let output = Command::new(&bench.redis_benchmark)
            .args(["-p", &self.server(bench).port().to_string()])
            .args(["-c", &CONNECTIONS.to_string(), "-P", &PIPELINE.to_string()])
            .args(["-n", &calls.to_string(), "-r", &self.keys.to_string()])
            .arg("--csv")
            .args(&self.command)
            .output()
            .context("redis-benchmark does not start")?;
        ensure!(output.status.success(), "redis-benchmark: {output:?}");
        // It rounds up to whole pipelines for each connection.
        self.calls += calls;
        let text = String::from_utf8_lossy(&output.stdout);
        parse(&text).with_context(|| format!("redis-benchmark said {text}"))
    }

    fn check(&self, bench: &Bench, errors_before: f64) -> anyhow::Result<()> {
        let server = self.server(bench);
        let errors = server.errors()? - errors_before;
        ensure!(errors < 1.0, "{}: {errors} calls failed", self.name);
        if self.check == Check::NoErrors {
            return Ok(());
        }
        let tokens = server.command(&["HGET", HOT, "tokens"])?.text();
        let left = tokens.parse::<f64>()?;
        match self.check {
            Check::Taken => {
                let taken = BURST as f64 - left;
                ensure!(
                    (taken - self.calls as f64).abs() < 1.0,
                    "{}: {} calls took {taken} tokens",
                    self.name,
                    self.calls
                );
            }
            Check::Empty => ensure!(left < 1.0, "{}: {left} tokens are left", self.name),
            Check::NoErrors => {}
        }
        Ok(())
    }
}

impl Candidate for Plain {
    fn name(&self) -> &str {
        &self.name
    }

    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()> {
        if let Some(server) = &self.server {
            server.command(&["FLUSHALL"])?;
            // Most keys; redis-benchmark has no way to make all.
            self.run(bench, multiple(self.keys as f64 * 3.0))?;
            return Ok(());
        }
        for first in (0..self.keys).step_by(FILL_CHUNK).filter(|_| self.fills) {
            let last = (first + FILL_CHUNK).min(self.keys) - 1;
            let numbers = [first as u64, last as u64, BURST, now_ms()?, LIFE_S];
            let [first, last, burst, now, life] = numbers.map(|number| number.to_string());
            let arguments = [PREFIX, &first, &last, &burst, &now, &life];
            let words = ["EVAL", FILL, "0"].into_iter().chain(arguments);
            bench.server.command(&words.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn sample(&mut self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        let errors = self.server(bench).errors()?;
        let calls = multiple(self.calls_per_s * span.as_secs_f64());
        let server = self.server.clone();
        let meter = Meter::start(server.as_deref().unwrap_or(&bench.server))?;
        let [calls_per_s, p50_us, p99_us] = self.run(bench, calls)?;
        self.calls_per_s = calls_per_s;
        let sample = meter.stop(&Work {
            decisions: calls as f64 / self.calls_per_decision,
            elapsed: Duration::from_secs_f64(calls as f64 / calls_per_s),
            p50_us,
            p99_us,
            here: false,
        })?;
        self.check(bench, errors)?;
        Ok(sample)
    }
}

/// Returns a number of calls that fills whole pipelines on every connection: the rest would be
/// made, but not counted.
fn multiple(calls: f64) -> u64 {
    let whole = (CONNECTIONS * PIPELINE) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of calls"
    )]
    let calls = ((calls / whole).ceil().max(1.0) * whole) as u64;
    calls
}

fn script(bench: &Bench, key: &str, burst: u64) -> anyhow::Result<Vec<String>> {
    let sha = bench.server.load(SCRIPT)?;
    let [rate, burst, now, life] =
        [RATE, burst, now_ms()?, LIFE_S].map(|number| number.to_string());
    let key = key.to_owned();
    Ok(vec![
        "EVALSHA".to_owned(),
        sha,
        "1".to_owned(),
        key,
        rate,
        burst,
        now,
        life,
    ])
}

pub(crate) fn now_ms() -> anyhow::Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_millis())?)
}

/// Returns calls per second, median and 99th percentile in µs, from the output of `--csv`.
fn parse(text: &str) -> anyhow::Result<[f64; 3]> {
    let row = |line: &str| -> Vec<String> {
        let cells = line.trim().trim_matches('"').split("\",\"");
        cells.map(str::to_owned).collect()
    };
    let mut lines = text.lines();
    let (Some(header), Some(values)) = (lines.next(), lines.next_back()) else {
        bail!("nothing");
    };
    let (header, values) = (row(header), row(values));
    let cell = |name: &str| -> anyhow::Result<f64> {
        let at = header.iter().position(|it| it == name);
        let value = at.and_then(|at| values.get(at)).context("no such column")?;
        Ok(value.parse()?)
    };
    Ok([
        cell("rps")?,
        cell("p50_latency_ms")? * 1e3,
        cell("p99_latency_ms")? * 1e3,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_benchmark_output_is_parsed() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                    \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                    \"EVALSHA \"\"a\"\",b\",\"1000.50\",\"1.0\",\"0.5\",\"0.750\",\"2.0\",\"3.0\",\"4.0\"\n";
        let [per_s, p50, p99] = parse(text).unwrap();
        assert!((per_s - 1000.5).abs() < 1e-9);
        assert!((p50 - 750.0).abs() < 1e-9 && (p99 - 3000.0).abs() < 1e-9);
        assert!(parse("").is_err());
    }
}
