//! The summary of a tally, for people.

use super::SimulationTally;
use super::rows::LimitRow;
use crate::simulate::table::{TextTable, grouped};
use crate::simulate::when;
use std::fmt;
use tidegate_policy::guard::GuardEffect;

/// The maximum number of limits to list.
const ROWS_MAX: usize = 100;

/// The number of most refused keys to list.
const TOP: usize = 10;

impl fmt::Display for SimulationTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = if self.total.asked == 1 {
            "request"
        } else {
            "requests"
        };
        writeln!(
            f,
            "{} {requests}: {} allowed ({} met no limit), {} refused",
            grouped(self.total.asked),
            grouped(self.total.allowed()),
            grouped(self.unlimited),
            grouped(self.total.refused),
        )?;
        if self.would_refuse > 0 {
            let count = grouped(self.would_refuse);
            writeln!(f, "{count} would have been refused if not in shadow mode")?;
        }
        if let Some((first, last)) = self.span {
            let (from, to) = (when::show(first), when::show(last));
            writeln!(f, "from {from} to {to}: {}", duration(last.since(first)))?;
        }
        self.show_guards(f)?;
        self.show_limits(f)?;
        self.show_refused(f)
    }
}

impl SimulationTally {
    fn show_guards(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guards.is_empty() {
            return Ok(());
        }
        let mut table = TextTable::new(["guard", "refused", "exempt"], 1);
        for guard in &self.guards {
            let shadow = if guard.is_shadow { " (shadow)" } else { "" };
            let count = grouped(guard.count);
            let [refused, exempt] = match guard.effect {
                GuardEffect::Refuse => [count, String::new()],
                GuardEffect::Exempt => [String::new(), count],
            };
            table.row([format!("{}{shadow}", guard.name), refused, exempt]);
        }
        write!(f, "\n{}", table.show())
    }

    fn show_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["policy", "limit", "asked", "allowed", "refused", "", "keys"];
        let mut table = TextTable::new(head, 2);
        for row in self.rows.all.iter().take(ROWS_MAX) {
            table.row([
                row.policy.to_string(),
                row.name(),
                grouped(row.counts.asked),
                grouped(row.counts.allowed()),
                grouped(row.counts.refused),
                percent(row.counts.refused, row.counts.asked),
                row.keys(),
            ]);
        }
        write!(f, "\n{}", table.show())?;
        if self.rows.all.len() > ROWS_MAX {
            writeln!(f, "  … and {} more", self.rows.all.len() - ROWS_MAX)?;
        }
        Ok(())
    }

    fn show_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let top = self.rows.refused.top(TOP);
        if top.is_empty() {
            return Ok(());
        }
        let mut table = TextTable::new(["refused most", "key", "refused"], 2);
        for watched in top {
            let Some(row) = self.rows.all.get(watched.row) else {
                continue;
            };
            let at_least = if self.rows.refused.error() > 0 {
                "≥ "
            } else {
                ""
            };
            table.row([
                format!("{}/{}", row.policy, row.name()),
                watched.key.into(),
                format!("{at_least}{}", grouped(watched.count)),
            ]);
        }
        write!(f, "\n{}", table.show())
    }
}

impl LimitRow {
    fn name(&self) -> String {
        let shadow = if self.is_shadow { " (shadow)" } else { "" };
        format!("{}{shadow}", self.limit)
    }

    fn keys(&self) -> String {
        match self.keys.exact() {
            Some(count) => grouped(count),
            None => format!("≈ {}", grouped(self.keys.estimate())),
        }
    }
}

/// Returns a share in percent, to one digit: `12.5 %`; empty if the whole is 0.
fn percent(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 1_000;
    match thousandths.checked_div(u128::from(whole)) {
        Some(share) => format!("{}.{} %", share / 10, share % 10),
        None => String::new(),
    }
}

/// Returns a duration in its two largest units, or in milliseconds.
fn duration(micros: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = micros / 1_000_000;
    if seconds < 60 {
        return format!("{}.{:03} s", seconds, micros / 1_000 % 1_000);
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (name, length) in UNITS {
        if rest >= length {
            parts.push(format!("{} {name}", rest / length));
            rest %= length;
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_lengths_read_well() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
        assert_eq!(percent(0, 0), "");
        for (micros, text) in [
            (0, "0.000 s"),
            (1_234_567, "1.234 s"),
            (60_000_000, "1 min"),
            (3_661_000_000, "1 h 1 min"),
            (90_061_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(micros), text);
        }
    }
}
