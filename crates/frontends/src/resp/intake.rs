//! The input buffer of a connection.

use super::parse::{CommandBounds, ParseProgress, Parser, RespCommand, RespFault};

/// The initial capacity; most commands, and most batches of them, fit.
const FIRST_BYTES: usize = 4 << 10;

/// The capacity that an empty buffer keeps.
pub(super) const KEPT_BYTES: usize = 16 << 10;

/// The input, and the position up to which it has been handled.
#[derive(Debug)]
pub(super) struct Intake {
    bytes: Vec<u8>,
    /// The start of the next command.
    start: usize,
    /// The number of commands so far.
    commands: u64,
    parser: Parser,
}

impl Intake {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            commands: 0,
            parser: Parser::default(),
        }
    }

    /// Returns the buffer with room to read more, enough for a command of `command_bytes`. Frees the
    /// handled input.
    pub(super) fn room(&mut self, command_bytes: usize) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes.shrink_to(KEPT_BYTES);
        }
        if self.bytes.len() == self.bytes.capacity() {
            let grown = self.bytes.capacity().saturating_mul(2).max(FIRST_BYTES);
            // One byte more than a command may have, so that there is always room for the byte that
            // exceeds the limit.
            let grown = grown.min(command_bytes.saturating_add(1));
            self.bytes
                .reserve_exact(grown.saturating_sub(self.bytes.len()));
        }
        &mut self.bytes
    }

    /// Returns true if there is room, or room can be made.
    pub(super) fn has_room(&self, command_bytes: usize) -> bool {
        self.bytes.len().saturating_sub(self.start) <= command_bytes
    }

    /// Returns the next command, if it is complete.
    #[inline]
    pub(super) fn next(
        &mut self,
        bounds: &CommandBounds,
    ) -> Result<Option<RespCommand<'_>>, RespFault> {
        let text = self.bytes.get(self.start..).unwrap_or_default();
        match self.parser.parse(text, bounds)? {
            ParseProgress::More => Ok(None),
            ParseProgress::Command(used) => {
                self.start = self.start.saturating_add(used);
                self.commands = self.commands.wrapping_add(1);
                Ok(Some(self.parser.command(text)))
            }
        }
    }

    /// Returns the number of the incomplete command, for which there is a timeout.
    pub(super) fn partial(&self) -> Option<u64> {
        (self.start < self.bytes.len()).then_some(self.commands)
    }
}
