//! The table on stdout, section by section as it is measured, and the JSON file.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::bars::{self, Bar};
use crate::compare::{Bench, Cell, Section};
use crate::sample::Sample;

/// A larger spread is marked: such a cell needs an idle machine.
const SPREAD_MAX: f64 = 0.15;

/// Prints results immediately and keeps them for the file.
pub(crate) struct Report {
    path: Option<PathBuf>,
    settings: Value,
    sections: Vec<Value>,
    bars: Vec<Bar>,
    faults: Vec<Value>,
}

impl Report {
    /// Prints the environment.
    pub(crate) fn begin(bench: &Bench, path: Option<PathBuf>) -> Self {
        let version = &bench.server.version;
        println!(
            "{}; Redis {version} on core 0, clients on core 1",
            machine()
        );
        Self {
            path,
            settings: json!({
                "machine": machine(),
                "redis": version,
                "rounds": bench.rounds,
                "span_ms": bench.span.as_millis(),
                "keys": bench.keys,
            }),
            sections: Vec::new(),
            bars: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Prints an explanation of the figures.
    pub(crate) fn explain(bench: &Bench) {
        println!(
            "{} rounds of {} ms, in turn; medians; ± is (max - min) / median, * above 15 %;",
            bench.rounds,
            bench.span.as_millis()
        );
        println!(
            "× is decisions a second, ×CPU one over Redis' CPU, against the first line of its block."
        );
    }

    /// Prints one section.
    pub(crate) fn add(&mut self, section: &Section, cells: &[Cell]) -> anyhow::Result<()> {
        println!("\n{}: {}", section.id, section.title);
        println!(
            "  {:31} {:>9} {:>5} {:>6} {:>6} {:>9} {:>5} {:>10} {:>7} {:>7} {:>9} {:>8} {:>8} {:>6} {:>7}",
            "",
            "dec./s",
            "±",
            "×",
            "×CPU",
            "Redis µs",
            "busy",
            "client µs",
            "B in",
            "B out",
            "calls",
            "p50 µs",
            "p99 µs",
            "B/key",
            "stolen"
        );
        for cell in cells {
            println!("{}", line(cell, cells.first()));
        }
        for (name, why) in &section.absent {
            println!("  {name:31} {why}");
        }
        self.sections.push(json!({
            "section": section.id,
            "cells": cells.iter().map(|cell| record(cell, cells.first())).collect::<Vec<_>>(),
            "absent": section.absent,
        }));
        self.bars.extend(bars::of(section.id, cells));
        self.save()
    }

    /// Prints the result of a fault.
    pub(crate) fn add_fault(&mut self, fault: Value) -> anyhow::Result<()> {
        self.faults.push(fault);
        self.save()
    }

    /// Prints the bars. A missed bar is no error, because figures depend on the machine.
    pub(crate) fn end(&self) {
        if !self.bars.is_empty() {
            println!();
        }
        for bar in &self.bars {
            println!("{}", bar.line());
        }
    }

    /// Writes all results so far, so that an interrupted run leaves some.
    fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let all = json!({
            "settings": self.settings,
            "sections": self.sections,
            "bars": self.bars,
            "faults": self.faults,
        });
        fs::write(path, format!("{all:#}\n")).with_context(|| format!("writing {}", path.display()))
    }
}

fn line(cell: &Cell, first: Option<&Cell>) -> String {
    let median = |part: fn(&Sample) -> f64| cell.median(part);
    let spread = cell.spread(|sample| sample.per_s);
    let star = if spread > SPREAD_MAX { "*" } else { "" };
    let client = median(|sample| sample.client_us.unwrap_or(f64::NAN));
    format!(
        "  {:31} {:>9.0} {:>5} {:>6} {:>6} {:>9.2} {:>5} {:>10} {:>7.1} {:>7.1} {:>9.4} {:>8.0} {:>8.0} {:>6} {:>7}",
        cell.name,
        median(|sample| sample.per_s),
        percent(spread) + star,
        times(ratio(cell, first, |sample| sample.per_s)),
        times(ratio(cell, first, |sample| 1.0 / sample.redis_us)),
        median(|sample| sample.redis_us),
        percent(median(|sample| sample.redis_busy)),
        if client.is_nan() {
            "-".to_owned()
        } else {
            format!("{client:.2}")
        },
        median(|sample| sample.bytes_in),
        median(|sample| sample.bytes_out),
        median(|sample| sample.calls),
        median(|sample| sample.p50_us),
        median(|sample| sample.p99_us),
        cell.bytes_per_key
            .map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}")),
        percent(median(|sample| sample.stolen)),
    )
}

fn ratio(cell: &Cell, first: Option<&Cell>, part: fn(&Sample) -> f64) -> Option<f64> {
    Some(cell.median(part) / first?.median(part))
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn record(cell: &Cell, first: Option<&Cell>) -> Value {
    json!({
        "name": cell.name,
        "per_s": cell.median(|sample| sample.per_s),
        "spread": cell.spread(|sample| sample.per_s),
        "times_first": ratio(cell, first, |sample| sample.per_s),
        "redis_us": cell.median(|sample| sample.redis_us),
        "client_us": cell.samples.first().and_then(|sample| sample.client_us)
            .map(|_| cell.median(|sample| sample.client_us.unwrap_or(f64::NAN))),
        "bytes_in": cell.median(|sample| sample.bytes_in),
        "bytes_out": cell.median(|sample| sample.bytes_out),
        "calls": cell.median(|sample| sample.calls),
        "p50_us": cell.median(|sample| sample.p50_us),
        "p99_us": cell.median(|sample| sample.p99_us),
        "bytes_per_key": cell.bytes_per_key,
        "samples": cell.samples,
    })
}

/// Returns the processor and kernel, for later readers of the figures.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    format!(
        "{model}, Linux {}",
        read("/proc/sys/kernel/osrelease").trim()
    )
}
