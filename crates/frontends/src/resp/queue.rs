//! Commands of a transaction, from `MULTI` to `EXEC`.
//!
//! Commands are copied, because the buffer that they were parsed from is reused. A transaction is
//! bounded in commands and bytes; one that exceeds a bound fails as a whole at `EXEC`.

use super::parse::{RespCommand, WordRange, place};
use std::fmt;

/// The maximum number of commands of one transaction.
const COMMANDS_MAX: usize = 4_096;

/// The maximum number of bytes of one transaction: its words, and a range for each.
const BYTES_MAX: usize = 256 << 10;

/// Commands that wait for `EXEC`, in order, or run after it.
#[derive(Debug, Default)]
pub(super) struct CommandQueue {
    text: Vec<u8>,
    /// The ranges of the words of all commands.
    places: Vec<WordRange>,
    /// For each command, the number of ranges up to its last word.
    ends: Vec<u32>,
    /// The number of commands that [`next`](Self::next) has returned.
    done: usize,
    is_spoiled: bool,
}

/// The error for a command that does not fit.
#[derive(Debug)]
pub(super) struct QueueFull;

impl CommandQueue {
    /// Appends a command.
    pub(super) fn push(&mut self, command: RespCommand<'_>) -> Result<(), QueueFull> {
        let (text, places) = (self.text.len(), self.places.len());
        for word in command.words() {
            let start = place(self.text.len());
            self.text.extend_from_slice(word);
            self.places.push((start, place(self.text.len())));
        }
        let bytes = size_of::<WordRange>().saturating_mul(self.places.len());
        if self.len() >= COMMANDS_MAX || self.text.len().saturating_add(bytes) > BYTES_MAX {
            self.text.truncate(text);
            self.places.truncate(places);
            return Err(QueueFull);
        }
        self.ends.push(place(self.places.len()));
        Ok(())
    }

    /// Returns the number of commands.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Records that a command was rejected, so that `EXEC` has to fail. Frees the commands so far.
    pub(super) fn spoil(&mut self) {
        *self = Self {
            is_spoiled: true,
            ..Self::default()
        };
    }

    /// Returns true if a command was rejected.
    pub(super) fn is_spoiled(&self) -> bool {
        self.is_spoiled
    }

    /// Returns the next command to run. Frees the queue after the last one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<RespCommand<'_>> {
        if self.ends.is_empty() {
            return None;
        }
        self.next_of_some()
    }

    #[cold]
    fn next_of_some(&mut self) -> Option<RespCommand<'_>> {
        let Some(end) = self.ends.get(self.done) else {
            *self = Self::default();
            return None;
        };
        let before = self.done.checked_sub(1).and_then(|it| self.ends.get(it));
        let start = before.map_or(0, |end| *end as usize);
        // Lossless: a usize has no fewer bits here.
        let places = self.places.get(start..*end as usize).unwrap_or_default();
        self.done = self.done.saturating_add(1);
        Some(RespCommand::new(&self.text, places))
    }
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ERR the transaction is too large: at most {COMMANDS_MAX} commands and {BYTES_MAX} \
             bytes. Split it into several, or send a pipeline without MULTI"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `then` with the command of these words.
    fn with<T>(words: &[&str], then: impl FnOnce(RespCommand<'_>) -> T) -> T {
        let (mut text, mut places) = (Vec::new(), Vec::new());
        for word in words {
            let start = place(text.len());
            text.extend_from_slice(word.as_bytes());
            places.push((start, place(text.len())));
        }
        then(RespCommand::new(&text, &places))
    }

    #[test]
    fn queued_commands_are_returned_in_order_and_complete() {
        let mut queue = CommandQueue::default();
        let commands: [&[&str]; 3] = [&["a", "", "b c"], &["d"], &["", "e"]];
        for words in commands {
            with(words, |command| queue.push(command).unwrap());
        }
        for words in commands {
            let command = queue.next().unwrap();
            let found: Vec<_> = command.words().collect();
            let expected: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(found, expected);
        }
        assert!(queue.next().is_none() && queue.next().is_none());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn commands_arguments_and_bytes_are_bounded() {
        let many = vec![""; 1_024];
        for (words, fits) in [
            (vec!["x"], COMMANDS_MAX),
            (vec!["", "k"], COMMANDS_MAX),
            (many, BYTES_MAX / 8 / 1_024),
            (vec![&*"x".repeat(60_000)], 4),
        ] {
            let mut queue = CommandQueue::default();
            with(&words, |command| {
                while queue.push(command).is_ok() {}
                assert_eq!(queue.len(), fits);
                assert!(queue.push(command).is_err(), "it stays full");
            });
            assert_eq!(
                std::iter::from_fn(|| queue.next().map(|_| ())).count(),
                fits
            );
        }
    }
}
