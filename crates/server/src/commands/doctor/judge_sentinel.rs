//! Sentinels: their ability to perform a failover.

use super::finding::Finding;
use std::collections::BTreeMap;

/// The maximum time in which the loss of a master is detected, in milliseconds.
const DOWN_AFTER_MAX: u64 = 10_000;

/// A sentinel's information about the master.
#[derive(Debug)]
pub(super) struct Sentinel {
    pub(super) address: String,
    /// The fields of `SENTINEL MASTER`, or the reason why there are none.
    pub(super) master: Result<BTreeMap<String, String>, String>,
}

impl Sentinel {
    fn number(&self, name: &str) -> Option<u64> {
        self.master.as_ref().ok()?.get(name)?.parse().ok()
    }
}

/// Judges the sentinels.
pub(super) fn judge(sentinels: &[Sentinel]) -> Vec<Finding> {
    sentinels.iter().flat_map(of).collect()
}

fn of(sentinel: &Sentinel) -> Vec<Finding> {
    let at = |finding: Finding| finding.at(&sentinel.address);
    if let Err(error) = &sentinel.master {
        let text = format!("no response: {error}");
        return vec![at(Finding::warn("sentinel", text))];
    }
    let mut findings = Vec::new();
    if let (Some(quorum), Some(others)) = (
        sentinel.number("quorum"),
        sentinel.number("num-other-sentinels"),
    ) {
        findings.push(at(quorum_of(quorum, others.saturating_add(1))));
    }
    if let Some(ms) = sentinel.number("down-after-milliseconds") {
        let text = format!("a master is considered down after {ms} ms");
        findings.push(at(if ms > DOWN_AFTER_MAX {
            Finding::warn("sentinel", text)
                .help("lower `down-after-milliseconds`: until then `on_failure` applies")
        } else {
            Finding::ok("sentinel", text)
        }));
    }
    if findings.is_empty() {
        findings.push(at(Finding::unseen(
            "sentinel",
            "sentinel state not available",
        )));
    }
    findings
}

fn quorum_of(quorum: u64, sentinels: u64) -> Finding {
    let text = format!("{sentinels} sentinels, quorum {quorum}");
    if quorum > sentinels {
        return Finding::fail("sentinel", text).help("lower the quorum: it can never be reached");
    }
    if sentinels < 3 {
        return Finding::warn("sentinel", text)
            .help("run three or more: two cannot fail over when one of them is lost");
    }
    if quorum < 2 {
        return Finding::warn("sentinel", text)
            .help("raise the quorum to 2: otherwise a single sentinel can fail over");
    }
    Finding::ok("sentinel", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn marks(fields: &[(&str, &str)]) -> Vec<FindingLevel> {
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let sentinel = Sentinel {
            address: "s:26379".to_owned(),
            master: Ok(fields.collect()),
        };
        judge(&[sentinel])
            .into_iter()
            .map(|finding| finding.mark)
            .collect()
    }

    #[test]
    fn too_few_or_slow_sentinels_are_reported() {
        use FindingLevel::{Fail, Ok, Unseen, Warn};
        let of = |quorum, others, after| {
            marks(&[
                ("quorum", quorum),
                ("num-other-sentinels", others),
                ("down-after-milliseconds", after),
            ])
        };
        assert_eq!(of("2", "2", "5000"), [Ok, Ok]);
        assert_eq!(of("4", "2", "30000"), [Fail, Warn]);
        assert_eq!(of("2", "1", "5000"), [Warn, Ok]);
        assert_eq!(of("1", "2", "5000"), [Warn, Ok]);
        assert_eq!(marks(&[]), [Unseen]);
    }
}
