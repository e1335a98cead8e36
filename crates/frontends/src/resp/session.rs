//! The state of a connection.

use super::parse::CommandBounds;
use super::queue::CommandQueue;
use super::quotas::Quotas;
use std::net::IpAddr;

/// The maximum number of bytes of a connection's name, and of the name and version of a library.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// The state of a connection, from its first command to its last.
#[derive(Debug)]
pub(super) struct RespSession {
    /// The number of the connection, as `CLIENT ID` returns it.
    pub(super) id: u64,
    pub(super) peer: IpAddr,
    /// The connection is logged in, or needs no password.
    pub(super) is_known: bool,
    pub(super) name: Box<str>,
    pub(super) library: Box<str>,
    pub(super) library_version: Box<str>,
    pub(super) quotas: Quotas,
    /// The open transaction, between `MULTI` and `EXEC`.
    pub(super) transaction: Option<Box<CommandQueue>>,
}

impl RespSession {
    pub(super) fn new(id: u64, peer: IpAddr, is_known: bool) -> Self {
        Self {
            id,
            peer,
            is_known,
            name: Box::default(),
            library: Box::default(),
            library_version: Box::default(),
            quotas: Quotas::default(),
            transaction: None,
        }
    }

    /// Returns the bounds of its commands, within `command_bytes`.
    #[inline]
    pub(super) fn bounds(&self, command_bytes: usize) -> CommandBounds {
        if self.is_known {
            CommandBounds::of_client(command_bytes)
        } else {
            CommandBounds::unauthenticated(command_bytes)
        }
    }
}

/// Returns a valid client name: printable, without blanks, and short.
pub(super) fn name(text: &[u8]) -> Option<&str> {
    let is_sound = text.iter().all(|byte| (b'!'..=b'~').contains(byte));
    let text = std::str::from_utf8(text).ok()?;
    (is_sound && text.len() <= NAME_BYTES_MAX).then_some(text)
}
