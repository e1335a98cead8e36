//! Persistence: the data that a restart loses.

use super::finding::Finding;
use super::node::NodeExam;

const HELP: &str = "set `appendonly yes` and `appendfsync everysec` if buckets must survive a \
    restart";

/// Judges a node's persistence.
pub(super) fn judge(node: &NodeExam) -> Finding {
    let Some(aof) = node.info_field("aof_enabled") else {
        return Finding::unseen("persistence", "persistence settings not available");
    };
    if aof == "1" {
        return match node.setting("appendfsync") {
            Some("always") => Finding::ok("persistence", "a restart loses nothing (always)"),
            Some("everysec") => Finding::ok(
                "persistence",
                "a restart loses one or two seconds (everysec)",
            ),
            Some(other) => Finding::warn(
                "persistence",
                format!("appendfsync is {other}: a crash of the machine loses up to 30 seconds"),
            )
            .help(HELP),
            None => Finding::ok(
                "persistence",
                "append-only file is on; appendfsync not available",
            ),
        };
    }
    match node.setting("save") {
        Some("") => Finding::warn(
            "persistence",
            "persistence is off: after a restart every bucket is full",
        )
        .help(HELP),
        Some(save) => Finding::warn(
            "persistence",
            format!("snapshots only (save {save}): a restart loses all changes since the last one"),
        )
        .help(HELP),
        None => Finding::warn(
            "persistence",
            "append-only file is off: a restart loses all changes since the last snapshot",
        )
        .help(HELP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    #[test]
    fn the_loss_at_a_restart_is_reported() {
        for (info, settings, mark, word) in [
            (
                "aof_enabled:1",
                vec![("appendfsync", "always")],
                FindingLevel::Ok,
                "nothing",
            ),
            (
                "aof_enabled:1",
                vec![("appendfsync", "everysec")],
                FindingLevel::Ok,
                "one or two seconds",
            ),
            (
                "aof_enabled:1",
                vec![("appendfsync", "no")],
                FindingLevel::Warn,
                "30 seconds",
            ),
            ("aof_enabled:1", vec![], FindingLevel::Ok, "not available"),
            (
                "aof_enabled:0",
                vec![("save", "")],
                FindingLevel::Warn,
                "every bucket",
            ),
            (
                "aof_enabled:0",
                vec![("save", "3600 1")],
                FindingLevel::Warn,
                "3600 1",
            ),
            (
                "aof_enabled:0",
                vec![],
                FindingLevel::Warn,
                "since the last snapshot",
            ),
            ("", vec![], FindingLevel::Unseen, "not available"),
        ] {
            let judged = judge(&NodeExam::saying(info, &settings));
            assert_eq!(judged.mark, mark, "{info} {settings:?}");
            assert!(judged.text.contains(word), "{}", judged.text);
        }
    }
}
