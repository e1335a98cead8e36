//! Replication: the data that a failover can lose.

use super::finding::Finding;
use super::node::NodeExam;
use tidegate_redis_client::RedisTopology;

/// The maximum time that a master may accept writes without its replicas, in seconds.
const LAG_MAX: u64 = 10;

/// Judges a node's replication.
pub(super) fn judge(node: &NodeExam, mode: &RedisTopology) -> Vec<Finding> {
    let replicas = node.info_number("connected_slaves");
    if *mode == RedisTopology::Standalone {
        // Without Sentinel or Cluster, no replica is promoted.
        return vec![match replicas {
            None => Finding::unseen("replicas", "replicas not available"),
            Some(count) => Finding::ok(
                "replicas",
                format!("{count}, without automatic failover: in an outage `on_failure` applies"),
            ),
        }];
    }
    let seen = match replicas {
        None => Finding::unseen("replicas", "replicas not available"),
        Some(0) => Finding::warn("replicas", "no replica is connected")
            .help("add one: otherwise nothing replaces a lost master"),
        Some(count) => Finding::ok("replicas", format!("{count} connected")),
    };
    vec![seen, cut_off(node)]
}

/// Judges the behavior of a master that is cut off from its replicas.
fn cut_off(node: &NodeExam) -> Finding {
    let help = "set `min-replicas-to-write 1` and `min-replicas-max-lag 10`: a partitioned \
        master then stops granting requests that its successor grants again";
    match (
        node.number("min-replicas-to-write"),
        node.number("min-replicas-max-lag"),
    ) {
        (None, _) | (_, None) => Finding::unseen(
            "split brain",
            "min-replicas-to-write and min-replicas-max-lag not available",
        ),
        (Some(0), _) | (_, Some(0)) => Finding::warn(
            "split brain",
            "min-replicas-to-write is 0: a partitioned master keeps granting",
        )
        .help(help),
        (Some(_), Some(lag)) if lag > LAG_MAX => Finding::warn(
            "split brain",
            format!("a partitioned master keeps granting for {lag} s"),
        )
        .help(help),
        (Some(_), Some(lag)) => Finding::ok(
            "split brain",
            format!("a partitioned master stops granting after {lag} s"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn marks(
        mode: &RedisTopology,
        info: &str,
        settings: &[(&'static str, &str)],
    ) -> Vec<FindingLevel> {
        let judged = judge(&NodeExam::saying(info, settings), mode);
        judged.into_iter().map(|finding| finding.mark).collect()
    }

    #[test]
    fn the_possible_loss_at_a_failover_is_reported() {
        use FindingLevel::{Ok, Unseen, Warn};
        let alone = RedisTopology::Standalone;
        assert_eq!(marks(&alone, "connected_slaves:0", &[]), [Ok]);
        let set = |write, lag| {
            [
                ("min-replicas-to-write", write),
                ("min-replicas-max-lag", lag),
            ]
        };
        let cluster = RedisTopology::Cluster;
        assert_eq!(
            marks(&cluster, "connected_slaves:1", &set("1", "10")),
            [Ok, Ok]
        );
        assert_eq!(
            marks(&cluster, "connected_slaves:1", &set("0", "10")),
            [Ok, Warn]
        );
        assert_eq!(
            marks(&cluster, "connected_slaves:1", &set("1", "11")),
            [Ok, Warn]
        );
        assert_eq!(
            marks(&cluster, "connected_slaves:0", &set("1", "0")),
            [Warn, Warn]
        );
        assert_eq!(marks(&cluster, "", &[]), [Unseen, Unseen]);
    }
}
