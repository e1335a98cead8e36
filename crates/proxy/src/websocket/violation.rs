//! Violations of the frame protocol.

use std::fmt;

/// A violation of the frame protocol, reported to its sender with code 1002.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    ReservedOpcode,
    FragmentedControl,
    LongControl,
    NotMasked,
    Masked,
    NothingToContinue,
    MessageInMessage,
    LengthNotMinimal,
    LengthTooLarge,
}

impl Violation {
    /// Returns a text short enough for a Close frame.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::ReservedOpcode => "a frame has a reserved opcode",
            Self::FragmentedControl => "a control frame is fragmented",
            Self::LongControl => "a control frame is longer than 125 bytes",
            Self::NotMasked => "a frame of a client is not masked",
            Self::Masked => "a frame of a server is masked",
            Self::NothingToContinue => "a continuation follows no message",
            Self::MessageInMessage => "a message begins within another",
            Self::LengthNotMinimal => "a length is written in more bytes than it needs",
            Self::LengthTooLarge => "a length has its highest bit set",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
