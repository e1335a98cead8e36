//! The summary of a tally, for people.
//!
//! It goes to stderr, so that stdout has decisions only. Figures are exact counts of this run, never samples;
//! columns are as wide as their longest value.

use super::SimulationTally;
use super::rows::LimitRow;
use crate::simulate::table::{TextTable, duration, grouped};
use crate::styles::{BAD, GOOD, HEAD, paint};
use crate::timestamps;
use std::fmt::{self, Write};
use tidegate_policy::guard::GuardEffect;
use tidegate_policy::text::counted;

/// The maximum number of limits to list.
const ROWS_MAX: usize = 100;

/// The number of most refused keys to list.
const TOP: usize = 10;

/// Displays the summary without colours.
impl fmt::Display for SimulationTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        anstream::adapter::strip_str(&self.styled()).fmt(f)
    }
}

impl SimulationTally {
    /// Returns the summary with colours.
    pub(crate) fn styled(&self) -> String {
        let mut text = String::new();
        // Writing into memory does not fail.
        self.show(&mut text).ok();
        text
    }

    fn show(&self, f: &mut String) -> fmt::Result {
        let requests = counted(grouped(self.total.asked), "request", "requests");
        let allowed = format!("{} allowed", grouped(self.total.allowed()));
        let refused = format!("{} refused", grouped(self.total.refused));
        let refused_style = if self.total.refused > 0 { BAD } else { HEAD };
        writeln!(
            f,
            "{requests}: {} ({} matched no limit), {}",
            paint(GOOD, &allowed),
            grouped(self.unlimited),
            paint(refused_style, &refused),
        )?;
        if self.would_refuse > 0 {
            let count = grouped(self.would_refuse);
            writeln!(f, "{count} would have been refused if not in shadow mode")?;
        }
        if let Some((first, last)) = self.span {
            let (from, to) = (timestamps::show(first), timestamps::show(last));
            writeln!(f, "from {from} to {to}: {}", duration(last.since(first)))?;
        }
        self.show_guards(f)?;
        self.show_limits(f)?;
        self.show_refused(f)
    }

    fn show_guards(&self, f: &mut String) -> fmt::Result {
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
        write!(f, "\n{}", table.styled())
    }

    fn show_limits(&self, f: &mut String) -> fmt::Result {
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
        write!(f, "\n{}", table.styled())?;
        if self.rows.all.len() > ROWS_MAX {
            writeln!(f, "  … and {} more", self.rows.all.len() - ROWS_MAX)?;
        }
        Ok(())
    }

    fn show_refused(&self, f: &mut String) -> fmt::Result {
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
        write!(f, "\n{}", table.styled())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_readable() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
        assert_eq!(percent(0, 0), "");
    }
}
