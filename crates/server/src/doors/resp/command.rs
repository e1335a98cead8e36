//! The commands: one table, by which they are found, counted, and shown to whoever asks for them.

/// Which command it is. The order is that of [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Throttle,
    Check,
    Ping,
    Echo,
    Hello,
    Auth,
    Client,
    Command,
    Config,
    Info,
    Select,
    Reset,
    Quit,
}

/// What is known of a command before it is carried out.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// In lower case.
    pub(crate) name: &'static str,
    /// How many words, the name included; negative: at least so many.
    pub(super) arity: i64,
    pub(super) flags: &'static [&'static str],
    /// Whether the first argument is a key.
    pub(super) has_key: bool,
    /// Whether it is answered to somebody who has not logged in.
    pub(super) is_public: bool,
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
    pub(super) arguments: &'static [Argument],
    /// Empty for a command without any.
    pub(super) subcommands: &'static [Subcommand],
}

/// An argument, for hints at a prompt.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// As `COMMAND DOCS` has it.
    pub(super) kind: &'static str,
    /// Words that say more: `optional`, `multiple`.
    pub(super) flags: &'static [&'static str],
}

/// A command within a command.
#[derive(Debug)]
pub(super) struct Subcommand {
    /// In lower case.
    pub(super) name: &'static str,
    /// As with a command; both names count.
    pub(super) arity: i64,
    /// What `HELP` shows behind the name.
    pub(super) usage: &'static str,
    pub(super) summary: &'static str,
}

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
    subcommand("info", 2, "", "Return what is known of the connection."),
    subcommand("no-evict", 3, " (ON|OFF)", "Accepted; nobody is evicted."),
    subcommand("no-touch", 3, " (ON|OFF)", "Accepted; nothing is touched."),
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
    subcommand("count", 2, "", "Return how many commands there are."),
    subcommand(
        "docs",
        -2,
        " [<command-name> ...]",
        "Return what commands are for.",
    ),
    subcommand(
        "info",
        -2,
        " [<command-name> ...]",
        "Return what is known of commands.",
    ),
    subcommand("list", -2, "", "Return the names of all commands."),
    HELP,
];

const CONFIG: &[Subcommand] = &[
    subcommand(
        "get",
        -3,
        " <pattern> [<pattern> ...]",
        "Return what clients ask of a Redis; the configuration of limits is elsewhere.",
    ),
    HELP,
];

/// One that neither reads nor writes anything that others see.
const BLANK: Spec = Spec {
    kind: Kind::Ping,
    name: "",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast"],
    has_key: false,
    is_public: false,
    group: "connection",
    summary: "",
    arguments: &[],
    subcommands: &[],
};

/// All commands.
pub(crate) const ALL: [Spec; 13] = [
    Spec {
        kind: Kind::Throttle,
        name: "cl.throttle",
        flags: &["write", "module", "fast"],
        has_key: true,
        group: "module",
        summary: "Takes tokens of a key's bucket, by a quota that the call brings",
        arguments: &[
            argument("key", "key"),
            argument("max_burst", "integer"),
            argument("count_per_period", "integer"),
            argument("period", "integer"),
            optional("quantity", "integer"),
        ],
        ..BLANK
    },
    Spec {
        kind: Kind::Check,
        name: "tg.check",
        arity: -2,
        flags: &["write", "module", "fast"],
        group: "module",
        summary: "Decides a request by a policy of the configuration",
        arguments: &[
            argument("policy", "string"),
            several("field_value", "string"),
        ],
        ..BLANK
    },
    Spec {
        kind: Kind::Ping,
        name: "ping",
        flags: &["fast"],
        summary: "Answers PONG, or with the message",
        arguments: &[optional("message", "string")],
        ..BLANK
    },
    Spec {
        kind: Kind::Echo,
        name: "echo",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        summary: "Answers with the message",
        arguments: &[argument("message", "string")],
        ..BLANK
    },
    Spec {
        kind: Kind::Hello,
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
        summary: "Chooses the version of the protocol, and logs in",
        arguments: &[
            optional("protover", "integer"),
            several("auth_or_setname", "string"),
        ],
        ..BLANK
    },
    Spec {
        kind: Kind::Auth,
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
    Spec {
        kind: Kind::Client,
        name: "client",
        arity: -2,
        flags: &[],
        summary: "What is known of the connection",
        subcommands: CLIENT,
        ..BLANK
    },
    Spec {
        kind: Kind::Command,
        name: "command",
        flags: &["loading", "stale"],
        group: "server",
        summary: "What is known of commands",
        subcommands: COMMAND,
        ..BLANK
    },
    Spec {
        kind: Kind::Config,
        name: "config",
        arity: -2,
        flags: &[],
        group: "server",
        summary: "What clients ask of the configuration of a Redis",
        subcommands: CONFIG,
        ..BLANK
    },
    Spec {
        kind: Kind::Info,
        name: "info",
        flags: &["loading", "stale"],
        group: "server",
        summary: "Who this is",
        arguments: &[several("section", "string")],
        ..BLANK
    },
    Spec {
        kind: Kind::Select,
        name: "select",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        summary: "Chooses the only database there is, 0",
        arguments: &[argument("index", "integer")],
        ..BLANK
    },
    Spec {
        kind: Kind::Reset,
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
        summary: "Makes the connection as it was when it was opened",
        ..BLANK
    },
    Spec {
        kind: Kind::Quit,
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
];

/// The same, where it can be borrowed from for ever.
pub(super) static TABLE: &[Spec; ALL.len()] = &ALL;

/// The command of this name, in any case.
#[inline]
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    // The one that is asked thousands of times a second is the first.
    TABLE.iter().find(|spec| {
        spec.name.len() == name.len() && name.eq_ignore_ascii_case(spec.name.as_bytes())
    })
}

/// Whether a command of `arity` may have so many words.
#[inline]
pub(super) fn fits(arity: i64, words: usize) -> bool {
    let words = i64::try_from(words).unwrap_or(i64::MAX);
    if arity < 0 {
        words >= arity.saturating_neg()
    } else {
        words == arity
    }
}

impl Spec {
    /// The subcommand of this name, in any case.
    pub(super) fn subcommand(&self, name: &[u8]) -> Option<&'static Subcommand> {
        let mut subcommands = self.subcommands.iter();
        subcommands.find(|it| name.eq_ignore_ascii_case(it.name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_where_its_kind_says_and_is_found_in_any_case() {
        for (nth, spec) in TABLE.iter().enumerate() {
            assert_eq!(spec.kind as usize, nth, "{}", spec.name);
            let found = find(spec.name.to_uppercase().as_bytes()).map(|it| it.kind);
            assert_eq!(found, Some(spec.kind));
            assert_eq!(spec.name, spec.name.to_lowercase());
            assert!(!spec.summary.is_empty());
        }
        assert!(find(b"").is_none() && find(b"get").is_none() && find(b"pin").is_none());
    }

    #[test]
    fn an_arity_is_exact_or_a_least() {
        assert!(fits(2, 2) && !fits(2, 1) && !fits(2, 3));
        assert!(fits(-2, 2) && !fits(-2, 1) && fits(-2, 99));
    }
}
