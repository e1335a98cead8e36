//! The budgets of a subject, for people.

use crate::simulate::table::{TextTable, duration, grouped};
use std::fmt::Write;
use tidegate_control::buckets::budget::{BandBudget, BudgetReport, LimitBudget};

/// The number of characters of a full bar.
const BAR: usize = 10;

/// Returns a table of the bands, followed by the limits without one.
pub(super) fn text(report: &BudgetReport) -> String {
    let head = ["limit", "band", "used", "", "left", "resets in"];
    let mut table = TextTable::new(head, 2);
    let mut notes = String::new();
    for limit in &report.limits {
        let name = format!("{}/{}", limit.policy, limit.limit);
        for (nth, band) in limit.bands.iter().enumerate() {
            table.row(row(limit, if nth == 0 { &name } else { "" }, band));
        }
        if let Some(why) = &limit.rate {
            let _ = writeln!(notes, "{name}: rate {why}");
        }
        if let Some(left) = limit.blocked_for_ms {
            let _ = writeln!(notes, "{name}: blocked for {}", shown(left));
        }
        if limit.shared {
            let _ = writeln!(notes, "{name}: counts for all clients");
        }
        if limit.mode == "shadow" {
            let _ = writeln!(notes, "{name}: in shadow mode, refuses nothing");
        }
    }
    let mut parts = Vec::new();
    if report.limits.is_empty() {
        parts.push("no limit counts by these identities alone\n".to_owned());
    }
    if report.limits.iter().any(|limit| !limit.bands.is_empty()) {
        parts.push(table.styled());
    }
    if !notes.is_empty() {
        parts.push(notes);
    }
    if !report.skipped.is_empty() {
        parts.push(skipped(report));
    }
    if let Some(note) = &report.note {
        parts.push(format!("note: {note}\n"));
    }
    parts.join("\n")
}

/// Lists the limits that are not in the table.
fn skipped(report: &BudgetReport) -> String {
    let mut text = "not shown:\n".to_owned();
    for skipped in &report.skipped {
        let _ = writeln!(
            text,
            "  {}/{}: {}",
            skipped.policy, skipped.limit, skipped.reason
        );
    }
    text
}

fn row(limit: &LimitBudget, name: &str, band: &BandBudget) -> [String; 6] {
    let written = match &band.label {
        Some(label) => format!("{label} ({})", band.band),
        None => band.band.clone(),
    };
    let written = match &limit.unit {
        Some(unit) => format!("{written} {unit}"),
        None => written,
    };
    let left = match band.overdrawn {
        0 => grouped(band.left),
        owed => format!("owes {}", grouped(owed)),
    };
    [
        name.to_owned(),
        written,
        format!("{} of {}", grouped(band.used), grouped(band.capacity)),
        bar(band),
        left,
        match band.reset_ms {
            0 => "–".to_owned(),
            left => shown(left),
        },
    ]
}

/// Returns the used share as a bar, and in percent.
fn bar(band: &BandBudget) -> String {
    let of = u128::from(band.capacity.max(1));
    let percent = u128::from(band.used) * 100 / of;
    let full = (u128::from(band.used) * 10).div_ceil(of);
    let full = usize::try_from(full).unwrap_or(BAR).min(BAR);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
    format!("{bar} {percent:>3}%")
}

fn shown(ms: u64) -> String {
    duration(ms.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;
    use tidegate_control::buckets::budget::BudgetReport;

    fn shown(report: serde_json::Value) -> String {
        let report: BudgetReport = serde_json::from_value(report).unwrap();
        anstream::adapter::strip_str(&text(&report)).to_string()
    }

    #[test]
    fn bands_are_a_table_and_the_rest_is_below() {
        let band = |band: &str, capacity: u64, used: u64, owed: u64| {
            json!({
                "band": band, "label": null, "algorithm": "fixed-window", "capacity": capacity,
                "used": used, "left": capacity.saturating_sub(used), "overdrawn": owed,
                "period_ms": 3_600_000, "reset_ms": if used == 0 { 0 } else { 125_000 },
            })
        };
        let limit = |limit: &str, bands: serde_json::Value| {
            json!({
                "policy": "api", "limit": limit, "mode": "enforce", "bucket": "x", "shared": false,
                "found": true, "bands": bands,
            })
        };
        let mut tokens = limit(
            "tokens",
            json!([band("1000/h", 1_000, 812, 0), band("4000/d", 4_000, 0, 0)]),
        );
        tokens["unit"] = "tokens".into();
        tokens["blocked_for_ms"] = 61_000.into();
        let mut all = limit("all", json!([band("10/h", 10, 15, 5)]));
        all["shared"] = true.into();
        all["mode"] = "shadow".into();
        let mut planned = limit("planned", json!([]));
        planned["rate"] = "none: this subject is unlimited".into();
        let skipped = json!({
            "policy": "web", "limit": "per-route", "missing": ["route"], "reason": "it also needs route",
        });
        let report = json!({
            "limits": [tokens, all, planned], "skipped": [skipped], "note": "full",
        });
        assert_eq!(
            shown(report),
            "  limit       band                   used                     left  resets in
  api/tokens  1000/h tokens  812 of 1,000  #########.  81%     188  2 min 5 s
              4000/d tokens    0 of 4,000  ..........   0%   4,000          –
  api/all     10/h               15 of 10  ########## 150%  owes 5  2 min 5 s

api/tokens: blocked for 1 min 1 s
api/all: counts for all clients
api/all: in shadow mode, refuses nothing
api/planned: rate none: this subject is unlimited

not shown:
  web/per-route: it also needs route

note: full
"
        );
    }

    #[test]
    fn a_subject_of_no_limit_is_told_why() {
        let report = json!({ "limits": [], "skipped": [] });
        assert_eq!(shown(report), "no limit counts by these identities alone\n");
    }
}
