//! The table on stdout, row by row as it is measured, and the JSON file.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::compare::{Cell, Plan, Section};
use crate::memory::Footprint;
use crate::stats;
use crate::subject;
use crate::workload::{MANY_KEYS, Row};

/// A larger spread is marked: such a cell needs an idle machine.
const SPREAD_MAX: f64 = 0.15;

/// Prints results immediately and keeps them for the file.
pub(crate) struct Report {
    path: Option<PathBuf>,
    faults: Vec<String>,
    settings: Value,
    cells: Vec<Value>,
    memory: Vec<Value>,
}

impl Report {
    /// Prints an explanation of the figures.
    pub(crate) fn begin(plan: &Plan, path: Option<PathBuf>) -> Self {
        println!("{}", machine());
        println!(
            "{} repetitions of {} ms, round-robin; medians; ± is (max - min) / median, * above 15 %;",
            plan.reps,
            plan.span.as_millis()
        );
        println!(
            "× is how many times as fast as (memory: as small as) the first line of its block."
        );
        Self {
            path,
            faults: Vec::new(),
            settings: json!({
                "machine": machine(),
                "reps": plan.reps,
                "span_ms": plan.span.as_millis(),
                "cores": plan.cores,
            }),
            cells: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// Prints one row of the section.
    pub(crate) fn add_row(
        &mut self,
        section: &Section,
        row: &Row,
        cells: &[Cell],
    ) -> anyhow::Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        println!("\n{}: {}", row.id, row.title);
        println!(
            "  {:14} {:>10} {:>7} {:>7}   {:>12} {:>7} {:>7} {:>8}",
            "", "1t ns/call", "×", "±", "2t Mcalls/s", "×", "±", "stolen"
        );
        for candidate in &section.candidates {
            let find = |name: &str, threads| {
                cells
                    .iter()
                    .filter(|cell| cell.fault.is_none())
                    .find(|cell| cell.candidate == name && cell.threads == threads)
            };
            let [one, two] = [1, 2].map(|threads| {
                find(candidate.name, threads).map(|cell| (cell, find(section.baseline, threads)))
            });
            if one.is_some() || two.is_some() {
                let stolen = [one, two]
                    .into_iter()
                    .flatten()
                    .map(|(cell, _)| cell.stolen());
                println!(
                    "  {:14} {}   {} {:>8}",
                    candidate.name,
                    columns(one, 10, |cell| format!("{:.1}", cell.ns_per_call())),
                    columns(two, 12, |cell| format!("{:.1}", cell.calls_per_s() / 1e6)),
                    percent(stolen.fold(0.0, f64::max)),
                );
            }
            for (cell, baseline) in [one, two].into_iter().flatten() {
                self.cells.push(record(row, cell, baseline));
            }
        }
        for fault in cells.iter().filter_map(|cell| cell.fault.as_ref()) {
            println!("  {fault}");
            self.faults.push(fault.clone());
        }
        self.save()
    }

    /// Prints the bytes per key.
    pub(crate) fn add_memory(&mut self, footprints: &[Footprint]) -> anyhow::Result<()> {
        if footprints.is_empty() {
            return Ok(());
        }
        let rival = footprints
            .iter()
            .find(|footprint| footprint.candidate == subject::RIVAL)
            .map(Footprint::bytes_per_key);
        println!("\nbytes: per key, {MANY_KEYS} keys of 22 bytes, growth of resident memory");
        println!("  {:14} {:>10} {:>7} {:>7}", "", "bytes/key", "×", "±");
        for footprint in footprints {
            let bytes = footprint.bytes_per_key();
            let spread = stats::spread(footprint.samples.iter().copied());
            let ratio = rival.map(|rival| rival / bytes);
            println!(
                "  {:14} {bytes:>10.1} {:>7} {:>7}",
                footprint.candidate,
                times(ratio),
                percent(spread),
            );
            self.memory.push(json!({
                "store": footprint.candidate,
                "bytes_per_key": bytes,
                "spread": spread,
                "times_rival": ratio,
                "samples": footprint.samples,
            }));
        }
        self.save()
    }

    /// Writes all results so far, so that an interrupted run leaves some.
    fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let all = json!({
            "settings": self.settings,
            "cells": self.cells,
            "bytes_per_key": self.memory,
            "faults": self.faults,
        });
        fs::write(path, format!("{all:#}\n")).with_context(|| format!("writing {}", path.display()))
    }

    /// Returns an error if a cell is invalid, or if nothing was measured, as with a misspelt
    /// filter.
    pub(crate) fn verdict(&self) -> anyhow::Result<()> {
        let any = !self.cells.is_empty() || !self.memory.is_empty();
        ensure!(any, "the filter matches no cell");
        ensure!(self.faults.is_empty(), "{}", self.faults.join("\n"));
        Ok(())
    }
}

/// A cell and its baseline.
type CellPair<'a> = (&'a Cell, Option<&'a Cell>);

fn columns(found: Option<CellPair<'_>>, width: usize, figure: fn(&Cell) -> String) -> String {
    let Some((cell, baseline)) = found else {
        return format!("{:>width$} {:>7} {:>7}", "-", "-", "-");
    };
    let star = if cell.spread() > SPREAD_MAX { "*" } else { "" };
    format!(
        "{:>width$} {:>7} {:>7}",
        figure(cell),
        times(speed(cell, baseline)),
        percent(cell.spread()) + star,
    )
}

fn speed(cell: &Cell, baseline: Option<&Cell>) -> Option<f64> {
    baseline.map(|baseline| cell.calls_per_s() / baseline.calls_per_s())
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn record(row: &Row, cell: &Cell, baseline: Option<&Cell>) -> Value {
    json!({
        "row": row.id,
        "store": cell.candidate,
        "threads": cell.threads,
        "calls_per_s": cell.calls_per_s(),
        "ns_per_call": cell.ns_per_call(),
        "spread": cell.spread(),
        "times_baseline": speed(cell, baseline),
        "baseline": baseline.map(|baseline| baseline.candidate),
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
