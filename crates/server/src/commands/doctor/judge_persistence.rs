//! Persistence: the data that a restart loses.

use super::finding::Finding;
use super::node::NodeExam;

const HELP: &str = "set `appendonly yes` with `appendfsync everysec`, if a restart may not give \
                    everybody a full bucket";

/// Judges a node's persistence.
pub(super) fn judge(node: &NodeExam) -> Finding {
    let Some(aof) = node.told("aof_enabled") else {
        return Finding::unseen(
            "persistence",
            "could not see whether anything is kept on disk",
        );
    };
    if aof == "1" {
        return match node.setting("appendfsync") {
            Some("always") => Finding::ok("persistence", "a restart forgets nothing (always)"),
            Some("everysec") => Finding::ok(
                "persistence",
                "a restart forgets a second or two (everysec)",
            ),
            Some(other) => Finding::warn(
                "persistence",
                format!(
                    "appendfsync is {other}: a crash of the machine forgets up to half a minute"
                ),
            )
            .help(HELP),
            None => Finding::ok(
                "persistence",
                "there is an append-only file; could not see how often it is synced",
            ),
        };
    }
    match node.setting("save") {
        Some("") => Finding::warn(
            "persistence",
            "nothing is kept on disk: after a restart every bucket is full",
        )
        .help(HELP),
        Some(save) => Finding::warn(
            "persistence",
            format!("snapshots alone (save {save}): a restart forgets all since the last one"),
        )
        .help(HELP),
        None => Finding::warn(
            "persistence",
            "there is no append-only file: a restart forgets all since the last snapshot, if any",
        )
        .help(HELP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    #[test]
    fn what_a_restart_forgets_is_told() {
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
                "a second",
            ),
            (
                "aof_enabled:1",
                vec![("appendfsync", "no")],
                FindingLevel::Warn,
                "half a minute",
            ),
            ("aof_enabled:1", vec![], FindingLevel::Ok, "could not see"),
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
            ("aof_enabled:0", vec![], FindingLevel::Warn, "if any"),
            ("", vec![], FindingLevel::Unseen, "could not see"),
        ] {
            let judged = judge(&NodeExam::saying(info, &settings));
            assert_eq!(judged.mark, mark, "{info} {settings:?}");
            assert!(judged.text.contains(word), "{}", judged.text);
        }
    }
}
