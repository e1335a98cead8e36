//! Memory: the behavior of Redis when it is full.

use super::finding::Finding;
use super::node::NodeExam;
use tidegate_policy::text::counted;

/// Judges a node's memory.
pub(super) fn judge(node: &NodeExam) -> Vec<Finding> {
    let policy = node
        .info_field("maxmemory_policy")
        .or(node.setting("maxmemory-policy"));
    let max = node.info_number("maxmemory").or(node.number("maxmemory"));
    let mut findings = vec![match policy {
        Some(policy) => eviction(policy, max.unwrap_or(0)),
        None => Finding::unseen("eviction", "maxmemory-policy not available"),
    }];
    findings.push(match max {
        None => Finding::unseen("maxmemory", "maxmemory not available"),
        Some(0) => Finding::warn("maxmemory", "maxmemory is not set").help(
            "set it below the memory of the machine: otherwise the system may kill Redis, and \
             all buckets are lost",
        ),
        Some(max) => Finding::ok("maxmemory", used(node, max)),
    });
    findings.push(match node.info_number("evicted_keys") {
        None => Finding::unseen("evicted", "evicted_keys not available"),
        Some(0) => Finding::ok("evicted", "no keys evicted since the start"),
        Some(count) => Finding::warn(
            "evicted",
            format!(
                "{} evicted since the start; evicted buckets started full again",
                counted(count, "key", "keys")
            ),
        )
        .help("give Redis more memory, or use a separate Redis for Tidegate"),
    });
    findings
}

fn eviction(policy: &str, max: u64) -> Finding {
    let text = format!("maxmemory-policy is {policy}");
    match policy {
        "noeviction" => Finding::ok(
            "eviction",
            format!("{text}: when memory is full, `on_failure` applies and no bucket is lost"),
        ),
        "volatile-ttl" => Finding::ok(
            "eviction",
            format!("{text}: nearly full buckets are evicted first"),
        ),
        _ => {
            let help = "use noeviction, or volatile-ttl on a shared server: other policies evict \
                buckets in use, which then start full";
            if max == 0 {
                let text = format!("{text}: harmless only while maxmemory is not set");
                Finding::warn("eviction", text).help(help)
            } else {
                Finding::fail("eviction", text).help(help)
            }
        }
    }
}

fn used(node: &NodeExam, max: u64) -> String {
    const MIB: u64 = 1 << 20;
    let total = format!("maxmemory is {} MiB", max / MIB);
    match node.info_number("used_memory") {
        Some(used) => format!("{total}, {} MiB in use", used / MIB),
        None => total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn marks(info: &str) -> Vec<FindingLevel> {
        let judged = judge(&NodeExam::saying(info, &[]));
        judged.into_iter().map(|finding| finding.mark).collect()
    }

    #[test]
    fn eviction_that_drops_live_buckets_fails() {
        use FindingLevel::{Fail, Ok, Unseen, Warn};
        for (policy, max, mark) in [
            ("noeviction", 1, Ok),
            ("volatile-ttl", 1, Ok),
            ("allkeys-lru", 1, Fail),
            ("allkeys-random", 1, Fail),
            ("volatile-lru", 1, Fail),
            ("volatile-lfu", 1, Fail),
            ("volatile-random", 0, Warn),
            ("allkeys-lfu", 0, Warn),
        ] {
            let info = format!("maxmemory:{max}\nmaxmemory_policy:{policy}\nevicted_keys:0");
            assert_eq!(marks(&info)[0], mark, "{policy} {max}");
        }
        assert_eq!(marks(""), [Unseen, Unseen, Unseen]);
        let full = "maxmemory:0\nmaxmemory_policy:noeviction\nevicted_keys:3";
        assert_eq!(marks(full), [Ok, Warn, Warn]);
    }
}
