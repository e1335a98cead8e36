//! Failures of calls and of connecting, and what each means for sending again.

use crate::address::Address;
use std::error::Error;
use std::fmt;

/// The most characters of a server's error text that are kept.
const DETAIL_CHARS_MAX: usize = 200;

/// A failed call: it got no usable reply.
///
/// [`class`](Self::class) is the known effect and decides whether the call may be sent again.
/// [`kind`](Self::kind) is the cause. The text names the node if it is known, and contains no secrets.
///
/// # Examples
///
/// ```
/// use tidegate_redis_client::{CallEffect, CallError, CallErrorKind, FailureReason};
///
/// let error = CallError::new(CallEffect::Ambiguous, CallErrorKind::Timeout, "");
/// assert!(error.is_transient());
/// assert_eq!(error.reason(), FailureReason::Timeout);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    class: CallEffect,
    kind: CallErrorKind,
    /// The node that it was sent to, if known.
    node: Option<Address>,
    /// The server's text, or our own; without secrets.
    detail: String,
}

/// The known effect of a failed call. Decides whether it may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Certainly without effect: anything may be sent again.
    NotExecuted,
    /// It may have been carried out: a consume may be sent once more, a refund never.
    Ambiguous,
    /// The server ran it: never to be sent again.
    Executed,
}

/// The kind of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The deadline passed.
    Timeout,
    /// The connection was lost while waiting for the answer.
    Disconnected,
    /// There is no connection to the node, or no node serves the slot.
    Unreachable,
    /// The circuit breaker of the node is open.
    BreakerOpen,
    /// The connection was closed by us.
    Closed,
    /// The server answered with an error: its code, such as `OOM`.
    Server(String),
    /// The answer made no sense.
    Malformed,
}

/// The reason of a failure, as far as a caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// No reply within the deadline.
    Timeout,
    /// No connection to the node.
    Unreachable,
    /// The node is not called for a moment, because it failed too often.
    Overloaded,
    /// The server rejects the credentials, or the user lacks a permission.
    Denied,
    /// The server is up and cannot do it now: it loads its data, is out of memory, is no master.
    Unable,
    /// Anything else.
    Other,
}

/// A failure of any kind, as far as a caller can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFailure {
    /// Its reason.
    pub reason: FailureReason,
    /// True if a later attempt may succeed without an operator.
    pub is_transient: bool,
    /// The text for people.
    pub message: String,
}

impl From<CallError> for ClientFailure {
    fn from(error: CallError) -> Self {
        Self {
            reason: error.reason(),
            is_transient: error.is_transient(),
            message: error.to_string(),
        }
    }
}

impl From<ConnectError> for ClientFailure {
    fn from(error: ConnectError) -> Self {
        Self {
            reason: error.reason(),
            is_transient: error.is_transient(),
            message: error.to_string(),
        }
    }
}

impl CallError {
    /// Returns an error with a text for people.
    pub fn new(class: CallEffect, kind: CallErrorKind, detail: impl Into<String>) -> Self {
        Self {
            class,
            kind,
            node: None,
            detail: detail.into(),
        }
    }

    /// An answer that makes no sense.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(CallEffect::Executed, CallErrorKind::Malformed, detail)
    }

    /// An error reply.
    pub(crate) fn server(error: &redis::ServerError) -> Self {
        let detail = error.details().unwrap_or_default();
        let code = nested_code(error.code(), detail)
            .or_else(|| missing_right(error.code(), detail))
            .unwrap_or(error.code());
        let class = if is_from_within(detail) {
            class_within(code)
        } else {
            class_of(code)
        };
        Self::new(
            class,
            CallErrorKind::Server(code.to_owned()),
            detail.chars().take(DETAIL_CHARS_MAX).collect::<String>(),
        )
    }

    /// Adds the node that the call was sent to.
    pub(crate) fn at(mut self, node: &Address) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// Replaces the known effect.
    pub(crate) fn with_class(mut self, class: CallEffect) -> Self {
        self.class = class;
        self
    }

    /// Returns the known effect of the call.
    pub fn class(&self) -> CallEffect {
        self.class
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> &CallErrorKind {
        &self.kind
    }

    /// The code of the server's error reply, if it was one.
    pub fn code(&self) -> Option<&str> {
        match &self.kind {
            CallErrorKind::Server(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the text of the server, or of the client where it failed itself.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns true if a later attempt may succeed without an operator.
    pub fn is_transient(&self) -> bool {
        match &self.kind {
            CallErrorKind::Timeout
            | CallErrorKind::Disconnected
            | CallErrorKind::Unreachable
            | CallErrorKind::BreakerOpen => true,
            CallErrorKind::Closed | CallErrorKind::Malformed => false,
            CallErrorKind::Server(code) => may_pass(code),
        }
    }

    /// Returns the reason, as far as a caller can act on it.
    pub fn reason(&self) -> FailureReason {
        match &self.kind {
            CallErrorKind::Timeout => FailureReason::Timeout,
            CallErrorKind::Disconnected | CallErrorKind::Unreachable | CallErrorKind::Closed => {
                FailureReason::Unreachable
            }
            CallErrorKind::BreakerOpen => FailureReason::Overloaded,
            CallErrorKind::Server(code) if DENIED.contains(&code.as_str()) => FailureReason::Denied,
            CallErrorKind::Server(code) if may_pass(code) => FailureReason::Unable,
            CallErrorKind::Server(_) | CallErrorKind::Malformed => FailureReason::Other,
        }
    }

    /// Returns true if the failure is a sign of the node's health, and not of this call alone.
    pub(crate) fn is_node_failure(&self) -> bool {
        match &self.kind {
            CallErrorKind::Timeout | CallErrorKind::Disconnected | CallErrorKind::Unreachable => {
                true
            }
            CallErrorKind::BreakerOpen | CallErrorKind::Closed | CallErrorKind::Malformed => false,
            CallErrorKind::Server(code) => NODE_FAILURES.contains(&code.as_str()),
        }
    }
}

/// Codes that prove that nothing was carried out, if they are about the call as a whole.
const NOT_EXECUTED: [&str; 16] = [
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "OOM",
    "MISCONF",
    "BUSY",
    "NOSCRIPT",
    "NOAUTH",
    "NOPERM",
    "CROSSSLOT",
    "WRONGPASS",
];

/// Codes without effect that an operator has to act on; the others are transient.
const PERMANENT: [&str; 4] = ["NOAUTH", "NOPERM", "WRONGPASS", "CROSSSLOT"];

/// Returns true if the server may soon be able again, without an operator.
fn may_pass(code: &str) -> bool {
    NOT_EXECUTED.contains(&code) && !PERMANENT.contains(&code)
}

/// Codes by which a node reports that it is unable at the moment.
const NODE_FAILURES: [&str; 8] = [
    "LOADING",
    "BUSY",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "READONLY",
];

/// Returns the effect of a call that a server rejected with this code.
fn class_of(code: &str) -> CallEffect {
    if NOT_EXECUTED.contains(&code) {
        CallEffect::NotExecuted
    } else {
        CallEffect::Executed
    }
}

/// Codes that a script gets at its first write or not at all, because nothing changes while it runs. Our
/// scripts write last.
const FIRST_WRITE: [&str; 5] = ["OOM", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN"];

/// The class of an error that ended a script half way. It may have written before: some rights are
/// needed only for its second write.
fn class_within(code: &str) -> CallEffect {
    if FIRST_WRITE.contains(&code) {
        CallEffect::NotExecuted
    } else {
        CallEffect::Executed
    }
}

/// Returns true if the error came from inside a script, and not from the call of it. Since Redis 7 the
/// position is at the end: `… script: 3f96…, on @user_script:1.`
fn is_from_within(detail: &str) -> bool {
    let place = detail.rsplit_once("script: ").map(|(_, place)| place);
    detail.starts_with(WRAPPED)
        || is_missing_right(detail)
        || place.is_some_and(|place| place.contains(", on @"))
}

/// Before Redis 7 an error inside a script was wrapped:
/// `ERR Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM command not …`.
fn nested_code<'a>(code: &str, detail: &'a str) -> Option<&'a str> {
    if code != "ERR" || !detail.starts_with(WRAPPED) {
        return None;
    }
    let (_, inner) = detail.split_once(": -")?;
    let inner = inner.split_ascii_whitespace().next()?;
    let is_code = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_uppercase());
    (is_code && inner != "ERR").then_some(inner)
}

/// The beginning of a wrapped error.
const WRAPPED: &str = "Error running script";

/// Returns the code of a missing permission inside a script, which the server reports without it.
fn missing_right(code: &str, detail: &str) -> Option<&'static str> {
    (code == "ERR" && is_missing_right(detail)).then_some("NOPERM")
}

/// Returns true if the text is that of a missing permission inside a script.
fn is_missing_right(detail: &str) -> bool {
    let is_wrapped = detail.starts_with(WRAPPED);
    MISSING_RIGHT
        .iter()
        .any(|start| detail.starts_with(start) || (is_wrapped && detail.contains(start)))
}

/// In the words of Redis up to 7.0 and of later servers.
const MISSING_RIGHT: [&str; 2] = [
    "The user executing the script can't ",
    "ACL failure in script",
];

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis")?;
        if let Some(node) = &self.node {
            write!(f, " at {node}")?;
        }
        match &self.kind {
            CallErrorKind::Timeout => f.write_str(" timed out")?,
            CallErrorKind::Disconnected => {
                f.write_str(" closed the connection before it responded")?;
            }
            CallErrorKind::Unreachable => f.write_str(" is not connected")?,
            CallErrorKind::BreakerOpen => {
                f.write_str(" failed too often; its circuit is open")?;
            }
            CallErrorKind::Closed => f.write_str(" was disconnected by Tidegate")?,
            CallErrorKind::Server(code) => write!(f, " answered {code}")?,
            CallErrorKind::Malformed => f.write_str(" returned an unexpected reply")?,
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl Error for CallError {}

/// Codes of rejected credentials and missing permissions.
const DENIED: [&str; 3] = ["NOPERM", "NOAUTH", "WRONGPASS"];

/// Why Redis cannot be used. The text is for people and holds no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    kind: ConnectErrorKind,
    message: String,
}

/// The kind of a failure to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The settings contradict each other, or a certificate cannot be read.
    Settings,
    /// No server responds at the address.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// User or password are wrong or missing, or the user may not do what a limiter does.
    Refused,
    /// The server is too old.
    Version,
    /// It answers, but cannot be used now: it loads its data, is no master, serves no slots.
    NotReady,
}

impl ConnectError {
    /// Returns an error with a text for people, which must not contain secrets.
    pub(crate) fn new(kind: ConnectErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// Returns the reason, as far as a caller can act on it.
    pub fn reason(&self) -> FailureReason {
        match self.kind {
            ConnectErrorKind::Unreachable => FailureReason::Unreachable,
            ConnectErrorKind::Refused => FailureReason::Denied,
            ConnectErrorKind::NotReady => FailureReason::Unable,
            ConnectErrorKind::Settings | ConnectErrorKind::Tls | ConnectErrorKind::Version => {
                FailureReason::Other
            }
        }
    }

    /// Returns true if a later attempt may succeed without an operator.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ConnectErrorKind::Unreachable | ConnectErrorKind::NotReady => true,
            ConnectErrorKind::Settings
            | ConnectErrorKind::Tls
            | ConnectErrorKind::Refused
            | ConnectErrorKind::Version => false,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ConnectError {}

#[cfg(test)]
mod tests;
