//! What was read of a connection and not yet answered.

use super::parse::{CommandBounds, Parsed, Parser, RespCommand, RespFault};

/// What a connection begins with; most commands, and most batches of them, fit.
const FIRST_BYTES: usize = 4 << 10;

/// What an empty one keeps.
pub(super) const KEPT_BYTES: usize = 16 << 10;

/// Bytes that were read, and how far they have been answered.
#[derive(Debug)]
pub(super) struct Intake {
    bytes: Vec<u8>,
    /// Where the next command begins.
    start: usize,
    /// Commands so far.
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

    /// Room for more to be read, so that a command of `command_bytes` fits. What was answered makes
    /// place.
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
            // One byte more than a command may have: then there is always room for what tells that
            // it has too many.
            let grown = grown.min(command_bytes.saturating_add(1));
            self.bytes
                .reserve_exact(grown.saturating_sub(self.bytes.len()));
        }
        &mut self.bytes
    }

    /// Whether there is room, or may be made.
    pub(super) fn has_room(&self, command_bytes: usize) -> bool {
        self.bytes.len().saturating_sub(self.start) <= command_bytes
    }

    /// The next command, if all of it is there.
    #[inline]
    pub(super) fn next(
        &mut self,
        bounds: &CommandBounds,
    ) -> Result<Option<RespCommand<'_>>, RespFault> {
        let text = self.bytes.get(self.start..).unwrap_or_default();
        match self.parser.parse(text, bounds)? {
            Parsed::More => Ok(None),
            Parsed::Command(used) => {
                self.start = self.start.saturating_add(used);
                self.commands = self.commands.wrapping_add(1);
                Ok(Some(self.parser.command(text)))
            }
        }
    }

    /// The number of the command of which there is half, which may be waited for only so long.
    pub(super) fn partial(&self) -> Option<u64> {
        (self.start < self.bytes.len()).then_some(self.commands)
    }
}
