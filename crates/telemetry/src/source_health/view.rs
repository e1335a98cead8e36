//! The status of a source.

use std::time::Duration;

/// The status of a source.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each of them is reported separately"
)]
#[derive(Clone, Debug)]
pub struct SourceView {
    /// The name in messages and metrics.
    pub name: String,
    /// The kind of the source.
    pub kind: &'static str,
    /// The source can be changed through this server.
    pub is_writable: bool,
    /// The version that is served.
    pub version: Option<String>,
    /// The time since it last answered, with a new version or not; `None` if it never did.
    pub age: Option<Duration>,
    /// The time since the served part was applied.
    pub applied: Option<Duration>,
    /// The last load failed, so the served part may be out of date.
    pub is_stale: bool,
    /// The latest version was rejected, and the previous one is served.
    pub is_refused: bool,
    /// The fallback is served, because the source has never been reached.
    pub is_fallback: bool,
    /// The current problem, if there is one.
    pub error: Option<String>,
}
