//! Commands about the server: its commands, configuration and version. Clients send them when they
//! connect, and people at a prompt.
//!
//! The replies are those that client libraries need to start: they read versions, roles and the table of
//! commands, and decide by them what to send. None of it comes from Tidegate's configuration, and `CONFIG`
//! can only read.

use super::command::{self, Argument, CommandSpec, TABLE};
use super::parse::RespCommand;
use super::reply::Replies;

/// The Redis version that these replies correspond to. Some clients check it before they send anything.
const REDIS_VERSION: &str = "7.4.0";

/// The settings that clients query: no persistence, and one database.
const CONFIG: [(&str, &str); 4] = [
    ("appendonly", "no"),
    ("databases", "1"),
    ("maxmemory", "0"),
    ("save", ""),
];

/// Executes `COMMAND [COUNT | DOCS [name…] | INFO [name…] | LIST | HELP]`.
pub(super) fn command(command: RespCommand<'_>, replies: &mut Replies) {
    let subcommand = command.word(1).to_ascii_lowercase();
    let names = command.words().skip(2);
    match subcommand.as_slice() {
        b"" => all(replies),
        b"count" => replies.natural(u64::try_from(TABLE.len()).unwrap_or(u64::MAX)),
        b"list" if command.len() > 2 => replies.error("ERR syntax error"),
        b"list" => {
            replies.array(TABLE.len());
            for spec in TABLE {
                replies.bulk(spec.name);
            }
        }
        b"info" if command.len() == 2 => all(replies),
        b"info" => {
            replies.array(names.len());
            for name in names {
                match command::find(name) {
                    Some(spec) => info_of(spec, replies),
                    None => replies.null(),
                }
            }
        }
        b"docs" => {
            let is_asked = |spec: &&CommandSpec| {
                command.len() == 2
                    || names
                        .clone()
                        .any(|name| name.eq_ignore_ascii_case(spec.name.as_bytes()))
            };
            let asked: Vec<_> = TABLE.iter().filter(is_asked).collect();
            replies.map(asked.len());
            for spec in asked {
                docs_of(spec, replies);
            }
        }
        _ => help("command", replies),
    }
}

fn all(replies: &mut Replies) {
    replies.array(TABLE.len());
    for spec in TABLE {
        info_of(spec, replies);
    }
}

fn info_of(spec: &CommandSpec, replies: &mut Replies) {
    replies.array(10);
    replies.bulk(spec.name);
    replies.integer(spec.arity);
    words(spec.flags, replies);
    for first_last_step in spec.keys {
        replies.integer(first_last_step);
    }
    let category = match spec.group {
        "connection" => &["@connection"][..],
        "generic" => &["@keyspace"],
        "transactions" => &["@transaction"],
        _ => &[],
    };
    words(category, replies);
    // No hints for a Cluster, and no key specifications: the three numbers above are enough.
    replies.array(0);
    replies.array(0);
    replies.array(spec.subcommands.len());
    for sub in spec.subcommands {
        replies.array(10);
        replies.bulk(format!("{}|{}", spec.name, sub.name));
        replies.integer(sub.arity);
        words(&[], replies);
        for _first_last_step in 0..3 {
            replies.integer(0);
        }
        words(category, replies);
        for _none in 0..3 {
            replies.array(0);
        }
    }
}

fn words(words: &[&'static str], replies: &mut Replies) {
    replies.set(words.len());
    for word in words {
        replies.simple(word);
    }
}

fn docs_of(spec: &CommandSpec, replies: &mut Replies) {
    let has_arguments = usize::from(!spec.arguments.is_empty());
    let has_subcommands = usize::from(!spec.subcommands.is_empty());
    replies.bulk(spec.name);
    replies.map(3 + has_arguments + has_subcommands);
    head_of(spec.summary, spec.group, replies);
    if has_arguments > 0 {
        replies.bulk("arguments");
        replies.array(spec.arguments.len());
        for argument in spec.arguments {
            argument_of(argument, replies);
        }
    }
    if has_subcommands > 0 {
        replies.bulk("subcommands");
        replies.map(spec.subcommands.len());
        for sub in spec.subcommands {
            replies.bulk(format!("{}|{}", spec.name, sub.name));
            replies.map(3);
            head_of(sub.summary, spec.group, replies);
        }
    }
}

fn head_of(summary: &str, group: &str, replies: &mut Replies) {
    let pairs = [("summary", summary), ("since", "1.0.0"), ("group", group)];
    for (name, value) in pairs {
        replies.bulk(name);
        replies.bulk(value);
    }
}

fn argument_of(argument: &Argument, replies: &mut Replies) {
    let has_flags = usize::from(!argument.flags.is_empty());
    let is_key = usize::from(argument.kind == "key");
    replies.map(2 + has_flags + is_key);
    replies.bulk("name");
    replies.bulk(argument.name);
    replies.bulk("type");
    replies.bulk(argument.kind);
    if is_key > 0 {
        replies.bulk("key_spec_index");
        replies.integer(0);
    }
    if has_flags > 0 {
        replies.bulk("flags");
        words(argument.flags, replies);
    }
}

/// Writes the `HELP` of a command with subcommands.
pub(super) fn help(name: &'static str, replies: &mut Replies) {
    let Some(spec) = command::find(name.as_bytes()) else {
        return replies.null();
    };
    replies.array(spec.subcommands.len().saturating_mul(2).saturating_add(1));
    replies.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        name.to_uppercase()
    ));
    for sub in spec.subcommands {
        replies.simple(&format!("{}{}", sub.name.to_uppercase(), sub.usage));
        replies.simple(&format!("    {}", sub.summary));
    }
}

/// Executes `CONFIG GET pattern…`: `*` selects all settings, and anything else is a name.
pub(super) fn config(command: RespCommand<'_>, replies: &mut Replies) {
    if command.word(1).eq_ignore_ascii_case(b"help") {
        return help("config", replies);
    }
    let is_asked = |name: &str| {
        let mut patterns = command.words().skip(2);
        patterns.any(|it| it == b"*" || it.eq_ignore_ascii_case(name.as_bytes()))
    };
    let asked: Vec<_> = CONFIG.iter().filter(|(name, _)| is_asked(name)).collect();
    replies.map(asked.len());
    for (name, value) in asked {
        replies.bulk(name);
        replies.bulk(value);
    }
}

/// Executes `INFO [section…]`.
pub(super) fn info(command: RespCommand<'_>, replies: &mut Replies) {
    let sections = [
        (
            "Server",
            format!(
                "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ntidegate_version:{}\r\n",
                env!("CARGO_PKG_VERSION")
            ),
        ),
        (
            "Replication",
            "role:master\r\nconnected_slaves:0\r\n".to_owned(),
        ),
        ("Cluster", "cluster_enabled:0\r\n".to_owned()),
    ];
    let is_asked = |name: &str| {
        let everything = ["default", "all", "everything"];
        let mut asked = command.words().skip(1);
        command.len() == 1
            || asked.any(|it| {
                it.eq_ignore_ascii_case(name.as_bytes())
                    || everything
                        .iter()
                        .any(|all| it.eq_ignore_ascii_case(all.as_bytes()))
            })
    };
    let asked = sections.iter().filter(|(name, _)| is_asked(name));
    let text: Vec<_> = asked
        .map(|(name, text)| format!("# {name}\r\n{text}"))
        .collect();
    replies.verbatim(&text.join("\r\n"));
}
