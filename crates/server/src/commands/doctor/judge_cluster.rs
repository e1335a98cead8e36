//! A Cluster as a whole.

use super::finding::Finding;
use super::node::NodeExam;

/// The number of slots of a Cluster.
const SLOTS: usize = 16_384;
/// The maximum time in which the loss of a master is detected, in milliseconds.
const NODE_TIMEOUT_MAX: u64 = 5_000;

/// Judges a Cluster.
pub(super) fn judge(nodes: &[NodeExam]) -> Vec<Finding> {
    let served: usize = nodes.iter().map(|node| node.slots).sum();
    let mut findings = vec![if served == SLOTS {
        Finding::ok(
            "slots",
            format!("all {SLOTS} are served by {} masters", nodes.len()),
        )
    } else {
        let text = format!("no master serves {} slots", SLOTS.saturating_sub(served));
        Finding::fail("slots", text).help("repair the Cluster: `redis-cli --cluster fix`")
    }];
    for node in nodes {
        findings.push(timeout(node).at(&node.address));
        findings.push(coverage(node).at(&node.address));
    }
    findings
}

fn timeout(node: &NodeExam) -> Finding {
    let help = "set `cluster-node-timeout` to 5000 or less: for this time a lost master is not \
        replaced, and a partitioned master keeps granting";
    match node.number("cluster-node-timeout") {
        None => Finding::unseen("node timeout", "cluster-node-timeout not available"),
        Some(ms) if ms > NODE_TIMEOUT_MAX => {
            Finding::warn("node timeout", format!("cluster-node-timeout is {ms} ms")).help(help)
        }
        Some(ms) => Finding::ok("node timeout", format!("cluster-node-timeout is {ms} ms")),
    }
}

fn coverage(node: &NodeExam) -> Finding {
    match node.setting("cluster-require-full-coverage") {
        None => Finding::unseen("coverage", "cluster-require-full-coverage not available"),
        Some("no") => Finding::ok("coverage", "a lost shard does not stop the others"),
        Some(_) => Finding::warn(
            "coverage",
            "cluster-require-full-coverage is on: one lost shard stops all of them",
        )
        .help("set it to `no`: then `on_failure` applies only to the lost shard"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn node(slots: usize, timeout: &'static str, coverage: &'static str) -> NodeExam {
        let settings = [
            ("cluster-node-timeout", timeout),
            ("cluster-require-full-coverage", coverage),
        ];
        NodeExam {
            slots,
            ..NodeExam::saying("", &settings)
        }
    }

    #[test]
    fn a_cluster_is_whole_quick_and_independent() {
        use FindingLevel::{Fail, Ok, Warn};
        let marks = |nodes: &[NodeExam]| -> Vec<FindingLevel> {
            judge(nodes)
                .into_iter()
                .map(|finding| finding.mark)
                .collect()
        };
        assert_eq!(marks(&[node(16_384, "5000", "no")]), [Ok, Ok, Ok]);
        assert_eq!(marks(&[node(16_000, "15000", "yes")]), [Fail, Warn, Warn]);
    }
}
