//! The table of all commands.
//!
//! A row has the name, arguments and flags of a command, in the terms of `COMMAND INFO`. Dispatch, the check
//! of the number of arguments, and the replies to `COMMAND` and `COMMAND DOCS` are made from it. So a command
//! without a row does not exist, and clients that read the table of a server before they send anything see
//! what this frontend accepts.

use super::{Argument, CommandKind, CommandSpec, Subcommand};

const fn argument(name: &'static str, kind: &'static str) -> Argument {
    Argument {
        name,
        kind,
        flags: &[],
    }
}

const fn optional(name: &'static str, kind: &'static str) -> Argument {
    Argument {
        name,
        kind,
        flags: &["optional"],
    }
}

const fn several(name: &'static str, kind: &'static str) -> Argument {
    Argument {
        name,
        kind,
        flags: &["optional", "multiple"],
    }
}

const fn subcommand(
    name: &'static str,
    arity: i64,
    usage: &'static str,
    summary: &'static str,
) -> Subcommand {
    Subcommand {
        name,
        arity,
        usage,
        summary,
    }
}

const HELP: Subcommand = subcommand("help", 2, "", "Print this help.");

const CLIENT: &[Subcommand] = &[
    subcommand("getname", 2, "", "Return the name of the connection."),
    subcommand("id", 2, "", "Return the number of the connection."),
    subcommand("info", 2, "", "Return information about the connection."),
    subcommand("no-evict", 3, " (ON|OFF)", "Accepted; has no effect."),
    subcommand("no-touch", 3, " (ON|OFF)", "Accepted; has no effect."),
    subcommand(
        "setinfo",
        4,
        " <option> <value>",
        "Name the client's library: LIB-NAME, LIB-VER.",
    ),
    subcommand("setname", 3, " <name>", "Name the connection."),
    HELP,
];

const COMMAND: &[Subcommand] = &[
    subcommand("count", 2, "", "Return the number of commands."),
    subcommand(
        "docs",
        -2,
        " [<command-name> ...]",
        "Return documentation of commands.",
    ),
    subcommand(
        "info",
        -2,
        " [<command-name> ...]",
        "Return information about commands.",
    ),
    subcommand("list", -2, "", "Return the names of all commands."),
    HELP,
];

const CONFIG: &[Subcommand] = &[
    subcommand(
        "get",
        -3,
        " <pattern> [<pattern> ...]",
        "Return the Redis settings that clients read; limits are configured elsewhere.",
    ),
    HELP,
];

/// Values of [`CommandSpec::keys`].
const NO_KEY: [i64; 3] = [0, 0, 0];
const ONE_KEY: [i64; 3] = [1, 1, 1];
const ALL_KEYS: [i64; 3] = [1, -1, 1];

/// A template: a command that neither reads nor writes shared state.
const BLANK: CommandSpec = CommandSpec {
    kind: CommandKind::Ping,
    name: "",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast"],
    keys: NO_KEY,
    is_public: false,
    group: "connection",
    summary: "",
    arguments: &[],
    subcommands: &[],
};

/// All commands.
pub const ALL: [CommandSpec; 27] = [
    CommandSpec {
        kind: CommandKind::Throttle,
        name: "cl.throttle",
        flags: &["write", "module", "fast"],
        keys: ONE_KEY,
        group: "module",
        summary: "Charges a key's bucket with a quota sent in the call",
        arguments: &[
            argument("key", "key"),
            argument("max_burst", "integer"),
            argument("count_per_period", "integer"),
            argument("period", "integer"),
            optional("quantity", "integer"),
        ],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Check,
        name: "tg.check",
        arity: -2,
        flags: &["write", "module", "fast"],
        group: "module",
        summary: "Checks a request against a configured policy",
        arguments: &[
            argument("policy", "string"),
            several("field_value", "string"),
        ],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Ping,
        name: "ping",
        flags: &["fast"],
        summary: "Answers PONG, or with the message",
        arguments: &[optional("message", "string")],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Echo,
        name: "echo",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        summary: "Answers with the message",
        arguments: &[argument("message", "string")],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Hello,
        name: "hello",
        flags: &[
            "noscript",
            "loading",
            "stale",
            "fast",
            "no_auth",
            "allow_busy",
        ],
        is_public: true,
        summary: "Selects the protocol version and authenticates",
        arguments: &[
            optional("protover", "integer"),
            several("auth_or_setname", "string"),
        ],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Auth,
        name: "auth",
        arity: -2,
        flags: &[
            "noscript",
            "loading",
            "stale",
            "fast",
            "no_auth",
            "allow_busy",
        ],
        is_public: true,
        summary: "Logs in",
        arguments: &[
            optional("username", "string"),
            argument("password", "string"),
        ],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Client,
        name: "client",
        arity: -2,
        flags: &[],
        summary: "Returns information about the connection",
        subcommands: CLIENT,
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Command,
        name: "command",
        flags: &["loading", "stale"],
        group: "server",
        summary: "Returns information about commands",
        subcommands: COMMAND,
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Config,
        name: "config",
        arity: -2,
        flags: &[],
        group: "server",
        summary: "Returns the Redis settings that clients read",
        subcommands: CONFIG,
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Info,
        name: "info",
        flags: &["loading", "stale"],
        group: "server",
        summary: "Returns the name and version of the server",
        arguments: &[several("section", "string")],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Select,
        name: "select",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        summary: "Selects database 0, the only one",
        arguments: &[argument("index", "integer")],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Reset,
        name: "reset",
        arity: 1,
        flags: &[
            "noscript",
            "loading",
            "stale",
            "fast",
            "no_auth",
            "allow_busy",
        ],
        is_public: true,
        summary: "Resets the connection",
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Quit,
        name: "quit",
        flags: &[
            "noscript",
            "loading",
            "stale",
            "fast",
            "no_auth",
            "allow_busy",
        ],
        is_public: true,
        summary: "Closes the connection",
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Multi,
        name: "multi",
        summary: "Starts a transaction",
        ..TRANSACTION
    },
    CommandSpec {
        kind: CommandKind::Exec,
        name: "exec",
        flags: &["noscript", "loading", "stale", "skip_slowlog"],
        summary: "Runs the commands of a transaction",
        ..TRANSACTION
    },
    CommandSpec {
        kind: CommandKind::Discard,
        name: "discard",
        summary: "Drops the commands of a transaction",
        ..TRANSACTION
    },
    CommandSpec {
        kind: CommandKind::Watch,
        name: "watch",
        arity: -2,
        keys: ALL_KEYS,
        summary: "Not supported: transactions are not conditional on keys",
        arguments: &[argument("key", "key")],
        ..TRANSACTION
    },
    CommandSpec {
        kind: CommandKind::Unwatch,
        name: "unwatch",
        summary: "Accepted; no key is watched",
        ..TRANSACTION
    },
    CommandSpec {
        kind: CommandKind::Del,
        name: "del",
        arity: -2,
        flags: &["write"],
        keys: ALL_KEYS,
        summary: "Resets the buckets of CL.THROTTLE keys, and counts those that existed",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Unlink,
        name: "unlink",
        arity: -2,
        flags: &["write", "fast"],
        keys: ALL_KEYS,
        summary: "The same as DEL",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Exists,
        name: "exists",
        arity: -2,
        keys: ALL_KEYS,
        summary: "Counts the CL.THROTTLE keys whose buckets are not full",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Type,
        name: "type",
        summary: "Replies string for a CL.THROTTLE key whose bucket is not full, or none",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Ttl,
        name: "ttl",
        summary: "Returns the seconds until the bucket of a CL.THROTTLE key is full",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Pttl,
        name: "pttl",
        summary: "Returns the milliseconds until the bucket of a CL.THROTTLE key is full",
        ..KEYED
    },
    CommandSpec {
        kind: CommandKind::Acquire,
        name: "tg.acquire",
        arity: -2,
        flags: &["write", "module", "fast"],
        group: "module",
        summary: "Checks a request that is in flight until it is released",
        arguments: &[
            argument("policy", "string"),
            several("field_value", "string"),
        ],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Renew,
        name: "tg.renew",
        arity: -2,
        flags: &["write", "module", "fast"],
        group: "module",
        summary: "Prolongs the permits of a request in flight",
        arguments: &[argument("id", "string"), optional("ttl_ms", "integer")],
        ..BLANK
    },
    CommandSpec {
        kind: CommandKind::Release,
        name: "tg.release",
        arity: 2,
        flags: &["write", "module", "fast"],
        group: "module",
        summary: "Releases the permits of a request that has ended",
        arguments: &[argument("id", "string")],
        ..BLANK
    },
];

/// Fields that most commands about keys share.
const KEYED: CommandSpec = CommandSpec {
    arity: 2,
    flags: &["readonly", "fast"],
    keys: ONE_KEY,
    group: "generic",
    arguments: &[argument("key", "key")],
    ..BLANK
};

/// Fields that most commands about transactions share.
const TRANSACTION: CommandSpec = CommandSpec {
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    group: "transactions",
    ..BLANK
};
