//! The cost of guards and plans per decision in instructions, which other load hardly affects.

use crate::decisions::CANDIDATES;
use crate::world::{RequestSequence, Folder, PROJECTS};
use anyhow::{Context as _, ensure};
use std::fs;
use std::process::Command;
use tidegate::Limiter;

/// The number of measured decisions.
const DECISIONS: u64 = 20_000;

/// The result of one variant.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    name: &'static str,
    instructions: u64,
}

/// Runs this program under valgrind for each variant.
pub(crate) fn run() -> anyhow::Result<Vec<Row>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("\ninstructions: valgrind is not there");
        return Ok(Vec::new());
    }
    let folder = Folder::new()?;
    let mut rows: Vec<Row> = Vec::new();
    println!(
        "\ninstructions of a decision\n  {:10} {:>8} {:>8}",
        "", "all", "added"
    );
    for candidate in &CANDIDATES {
        let out = folder.path().join(candidate.name);
        let ran = Command::new("valgrind")
            .args(["--tool=callgrind", "--collect-atstart=no"])
            .arg("--toggle-collect=*decisions_counted*")
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(std::env::current_exe()?)
            .args(["--instructions-of", candidate.name])
            .output()?;
        let said = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success(), "{}: {said}", candidate.name);
        let text = fs::read_to_string(&out)?;
        let total = text.lines().find_map(|line| {
            let total = line
                .strip_prefix("totals: ")
                .or(line.strip_prefix("summary: "));
            total?.trim().parse::<u64>().ok()
        });
        let instructions = total.context("callgrind tells no total")? / DECISIONS;
        let first = rows.first().map_or(instructions, |row| row.instructions);
        let added = instructions.saturating_sub(first);
        println!("  {:10} {instructions:>8} {added:>8}", candidate.name);
        rows.push(Row {
            name: candidate.name,
            instructions,
        });
    }
    Ok(rows)
}

/// Runs the decisions under valgrind.
pub(crate) fn here(name: &str) -> anyhow::Result<()> {
    let candidate = CANDIDATES.iter().find(|it| it.name == name);
    let candidate = candidate.context("there is no such candidate")?;
    let mut asking = RequestSequence::new(PROJECTS);
    let limiter = candidate.limiter(&asking)?;
    ensure!(decisions_counted(&limiter, &mut asking), "not all pass");
    Ok(())
}

#[inline(never)]
fn decisions_counted(limiter: &Limiter, asking: &mut RequestSequence) -> bool {
    (0..DECISIONS).all(|_| asking.next(limiter))
}
