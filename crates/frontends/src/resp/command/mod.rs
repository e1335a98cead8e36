//! The table of commands, by which they are found, counted, and described to clients.

mod table;

pub use table::ALL;

/// The commands, in the order of [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
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
    Multi,
    Exec,
    Discard,
    Watch,
    Unwatch,
    Del,
    Unlink,
    Exists,
    Type,
    Ttl,
    Pttl,
    Acquire,
    Renew,
    Release,
}

/// The description of a command.
#[derive(Debug)]
pub struct CommandSpec {
    pub(crate) kind: CommandKind,
    /// In lower case.
    pub(crate) name: &'static str,
    /// The number of words, including the name. If negative, the minimum number.
    pub(super) arity: i64,
    pub(super) flags: &'static [&'static str],
    /// Positions of the first and the last key, and the step between keys, as in `COMMAND INFO`.
    pub(super) keys: [i64; 3],
    /// The command is allowed before login.
    pub(super) is_public: bool,
    pub(super) group: &'static str,
    pub(super) summary: &'static str,
    pub(super) arguments: &'static [Argument],
    /// Empty for a command without subcommands.
    pub(super) subcommands: &'static [Subcommand],
}

/// An argument, for hints at a prompt.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// The type, as in `COMMAND DOCS`.
    pub(super) kind: &'static str,
    /// Further properties: `optional`, `multiple`.
    pub(super) flags: &'static [&'static str],
}

/// A subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// In lower case.
    pub name: &'static str,
    /// Like the arity of a command; both names count.
    pub(super) arity: i64,
    /// The arguments that `HELP` shows after the name.
    pub usage: &'static str,
    pub(super) summary: &'static str,
}

/// [`ALL`] with a static lifetime.
pub static TABLE: &[CommandSpec; ALL.len()] = &ALL;

/// Returns the command of this name, which is case-insensitive.
#[inline]
pub fn find(name: &[u8]) -> Option<&'static CommandSpec> {
    // The command that is called thousands of times a second is the first.
    TABLE.iter().find(|spec| {
        spec.name.len() == name.len() && name.eq_ignore_ascii_case(spec.name.as_bytes())
    })
}

/// Returns true if a command of `arity` may have this many words.
#[inline]
pub fn fits(arity: i64, words: usize) -> bool {
    let words = i64::try_from(words).unwrap_or(i64::MAX);
    if arity < 0 {
        words >= arity.saturating_neg()
    } else {
        words == arity
    }
}

impl CommandKind {
    /// Returns true for commands that run immediately even between `MULTI` and `EXEC`.
    pub(super) fn runs_in_transaction(self) -> bool {
        matches!(
            self,
            Self::Multi | Self::Exec | Self::Discard | Self::Watch | Self::Reset | Self::Quit
        )
    }
}

impl CommandSpec {
    /// Returns the subcommand of this name, which is case-insensitive.
    pub(super) fn subcommand(&self, name: &[u8]) -> Option<&'static Subcommand> {
        let mut subcommands = self.subcommands.iter();
        subcommands.find(|it| name.eq_ignore_ascii_case(it.name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_ordered_by_kind_and_found_in_any_case() {
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
    fn an_arity_is_exact_or_a_minimum() {
        assert!(fits(2, 2) && !fits(2, 1) && !fits(2, 3));
        assert!(fits(-2, 2) && !fits(-2, 1) && fits(-2, 99));
    }
}
