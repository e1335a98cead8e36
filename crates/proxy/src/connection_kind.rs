//! The kind of connection for a request.

/// The kind of connection for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// Any connection, reused if possible.
    Usual,
    /// A new connection.
    Fresh,
    /// A new connection that can be upgraded, which HTTP/2 cannot.
    Upgrade,
}
