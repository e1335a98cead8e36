//! Tries every required command, in a way that changes nothing.
//!
//! Redis reports a missing permission only for a command that is sent. Each command is therefore sent in a
//! form without effect, with a key that does not exist. A `NOPERM`, or a command that the server does not
//! know, becomes a finding. All other errors are expected and ignored.

use super::acl::{AclCommand, CommandNeed};
use super::finding::Finding;
use tidegate_redis_client::protocol::{self, Cmd};
use tidegate_redis_client::{Address, Connection, NodeChoice};

/// A command that the user may not run.
#[derive(Debug, PartialEq, Eq)]
struct MissingPermission {
    name: &'static str,
    whose: CommandNeed,
    /// The command is allowed, and the key is not.
    is_key: bool,
}

/// Judges the permissions of the user on a node. `key` is one that does not exist.
pub(super) async fn judge(
    connection: &Connection,
    address: &Address,
    needs: &[AclCommand],
    key: &str,
) -> Vec<Finding> {
    let mut denied = Vec::new();
    for need in needs {
        let Some(command) = command(need, key) else {
            continue;
        };
        let Err(error) = connection
            .command(NodeChoice::Node(address), &command)
            .await
        else {
            continue;
        };
        let text = error.to_string();
        let is_unknown = text.contains("unknown command") || text.contains("unknown subcommand");
        if error.code() == Some("NOPERM") || is_unknown {
            denied.push(MissingPermission {
                name: need.name,
                whose: need.whose,
                is_key: text.contains("access"),
            });
        }
    }
    let findings = of(&denied).into_iter();
    findings.map(|finding| finding.at(address)).collect()
}

/// Judges the access to keys outside the prefix of buckets, whose names are known.
pub(super) async fn judge_keys(connection: &Connection, keys: &[String]) -> Option<Finding> {
    let mut denied = Vec::new();
    for key in keys {
        // The type of the key does not matter: the permission is checked first.
        let mut command = protocol::cmd("GET");
        command.arg(key);
        let asked = connection.command(NodeChoice::Key(key.as_bytes()), &command);
        if let Err(error) = asked.await
            && error.code() == Some("NOPERM")
            && error.to_string().contains("access")
        {
            denied.push(format!("`{key}`"));
        }
    }
    if denied.is_empty() {
        return None;
    }
    let text = format!("the user has no access to {}", denied.join(", "));
    Some(Finding::fail("permissions", text).help(HELP))
}

fn command(need: &AclCommand, key: &str) -> Option<Cmd> {
    let (name, words) = need.probe.split_first()?;
    let mut command = protocol::cmd(name);
    for word in words {
        command.arg(if *word == "KEY" { key } else { word });
    }
    Some(command)
}

fn of(denied: &[MissingPermission]) -> Vec<Finding> {
    let names = |is_meant: &dyn Fn(&MissingPermission) -> bool| {
        let names = denied.iter().filter(|it| is_meant(it)).map(|it| it.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut findings = Vec::new();
    let keys = names(&|it| it.is_key && it.whose == CommandNeed::Decisions);
    if !keys.is_empty() {
        let text = format!("the user has no access to Tidegate's keys ({keys})");
        findings.push(Finding::fail("permissions", text).help(HELP));
    }
    let commands = names(&|it| !it.is_key && it.whose == CommandNeed::Decisions);
    if !commands.is_empty() {
        let text = format!("the user may not run {commands}: decisions are not possible");
        findings.push(Finding::fail("permissions", text).help(HELP));
    }
    let sources = names(&|it| !it.is_key && it.whose == CommandNeed::Sources);
    if !sources.is_empty() {
        let text = format!("the user may not run {sources}: sources and plans cannot be read");
        findings.push(Finding::fail("permissions", text).help(HELP));
    }
    if findings.is_empty() {
        let text = "the user has all permissions that decisions need";
        findings.push(Finding::ok("permissions", text));
    }
    for it in denied {
        if let CommandNeed::Comfort(what) = it.whose {
            let text = format!("the user may not run {}, which is for {what}", it.name);
            findings.push(Finding::warn("permissions", text).help(HELP));
        }
    }
    let operator = names(&|it| it.whose == CommandNeed::Operator);
    if !operator.is_empty() {
        let text = format!("the user may not run {operator}, needed by inspect, reset and doctor");
        findings.push(Finding::unseen("permissions", text));
    }
    findings
}

const HELP: &str = "the line below grants exactly the needed permissions";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn denied(name: &'static str, whose: CommandNeed, is_key: bool) -> MissingPermission {
        MissingPermission {
            name,
            whose,
            is_key,
        }
    }

    #[test]
    fn only_permissions_needed_by_decisions_and_sources_fail() {
        let judged = |denied: &[MissingPermission]| -> Vec<FindingLevel> {
            of(denied).into_iter().map(|finding| finding.mark).collect()
        };
        assert_eq!(judged(&[]), [FindingLevel::Ok]);
        assert_eq!(
            judged(&[denied("set", CommandNeed::Decisions, false)]),
            [FindingLevel::Fail]
        );
        assert_eq!(
            judged(&[denied("set", CommandNeed::Decisions, true)]),
            [FindingLevel::Fail]
        );
        assert_eq!(
            judged(&[denied("hgetall", CommandNeed::Sources, false)]),
            [FindingLevel::Fail]
        );
        let rest = [
            denied("zadd", CommandNeed::Comfort("counting"), false),
            denied("scan", CommandNeed::Operator, false),
        ];
        assert_eq!(
            judged(&rest),
            [FindingLevel::Ok, FindingLevel::Warn, FindingLevel::Unseen]
        );
    }
}
