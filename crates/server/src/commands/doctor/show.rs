//! The report, for people and for programs.

use super::Report;
use super::finding::FindingLevel;
use crate::simulate::table::TextTable;
use serde_json::{Value, json};
use std::fmt::Write;
use tidegate_policy::text::counted;

/// Returns a table, with the recommended action below each line that needs it.
pub(super) fn text(report: &Report) -> String {
    let mut table = TextTable::new(["", "check", "node", "finding"], 4);
    for finding in &report.findings {
        table.row([
            finding.mark.as_str().to_owned(),
            finding.check.to_owned(),
            finding.node.clone().unwrap_or_default(),
            finding.text.clone(),
        ]);
    }
    let table = table.show();
    let mut lines = table.lines();
    let mut text = format!("{}\n\n", report.store);
    text.push_str(lines.next().unwrap_or_default());
    text.push('\n');
    for (line, finding) in lines.zip(&report.findings) {
        text.push_str(line);
        text.push('\n');
        if let Some(help) = &finding.help {
            let _ = writeln!(text, "        help: {help}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(report));
    if let Some(acl) = &report.acl {
        text.push_str("\nA user with exactly the permissions that `serve` needs:\n  ");
        text.push_str(&acl.limiter);
        text.push_str("\nOne for `inspect`, `reset` and `doctor`:\n  ");
        text.push_str(&acl.operator);
        text.push('\n');
    }
    text
}

/// Returns the report as JSON.
pub(super) fn json(report: &Report) -> Value {
    let acl = report.acl.as_ref();
    json!({
        "store": report.store,
        "result": result(report),
        "findings": report.findings,
        "acl": acl.map(|acl| json!({ "limiter": acl.limiter, "operator": acl.operator })),
    })
}

fn count(report: &Report, mark: FindingLevel) -> usize {
    report.findings.iter().filter(|it| it.mark == mark).count()
}

fn result(report: &Report) -> FindingLevel {
    let worst = [FindingLevel::Fail, FindingLevel::Warn].into_iter();
    let mut worst = worst.filter(|mark| count(report, *mark) > 0);
    worst.next().unwrap_or(FindingLevel::Ok)
}

fn summary(report: &Report) -> String {
    format!(
        "{} ok, {}, {} failed, {} not checked",
        count(report, FindingLevel::Ok),
        counted(count(report, FindingLevel::Warn), "warning", "warnings"),
        count(report, FindingLevel::Fail),
        count(report, FindingLevel::Unseen)
    )
}
