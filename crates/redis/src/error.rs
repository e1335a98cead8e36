//! What can go wrong between us and Redis, and what it means for sending again.

use crate::settings::Address;
use std::error::Error;
use std::fmt;
use tidegate_core::{StoreError, StoreErrorKind};

/// How much of a server's error text is kept.
const DETAIL_CHARS_MAX: usize = 200;

/// A call that got no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    class: CallEffect,
    kind: CallErrorKind,
    /// Whom it was sent to, where that is known.
    node: Option<Address>,
    /// In the words of whoever failed; without secrets.
    detail: String,
}

/// What is known about the effect of a failed call. Decides whether it may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Certainly without effect: anything may be sent again.
    NotExecuted,
    /// It may have been carried out: a consume may be sent once more, a refund never.
    Ambiguous,
    /// The server ran it: never to be sent again.
    Executed,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The deadline passed.
    Timeout,
    /// The connection was lost while waiting for the answer.
    Disconnected,
    /// There is no connection to the node, or nobody serves the slot.
    Unreachable,
    /// The node has failed too often lately to be asked now.
    BreakerOpen,
    /// The connection was closed by us.
    Closed,
    /// The server answered with an error: its code, such as `OOM`.
    Server(String),
    /// The answer made no sense.
    Malformed,
}

impl CallError {
    /// A failure, told in `detail`.
    pub(crate) fn new(class: CallEffect, kind: CallErrorKind, detail: impl Into<String>) -> Self {
        Self {
            class,
            kind,
            node: None,
            detail: detail.into(),
        }
    }

    /// An answer that makes no sense.
    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
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

    pub(crate) fn at(mut self, node: &Address) -> Self {
        self.node = Some(node.clone());
        self
    }

    pub(crate) fn with_class(mut self, class: CallEffect) -> Self {
        self.class = class;
        self
    }

    /// Whether it was carried out.
    pub fn class(&self) -> CallEffect {
        self.class
    }

    /// What went wrong.
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

    /// What the server, or whoever failed, said.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether it may pass by itself.
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

    /// Whether it speaks against the node, and not only against this call.
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

/// Codes without effect that somebody has to do something about; the others may go away by
/// themselves.
const PERMANENT: [&str; 4] = ["NOAUTH", "NOPERM", "WRONGPASS", "CROSSSLOT"];

fn may_pass(code: &str) -> bool {
    NOT_EXECUTED.contains(&code) && !PERMANENT.contains(&code)
}

/// Codes by which a node says that it is of no use at the moment.
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

fn class_of(code: &str) -> CallEffect {
    if NOT_EXECUTED.contains(&code) {
        CallEffect::NotExecuted
    } else {
        CallEffect::Executed
    }
}

/// Codes that a script meets at its first write or not at all, for nothing changes while it runs.
/// Ours write last.
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

/// Whether a script ran into the error, and not the call of it. Since Redis 7 the place is told at
/// the end: `… script: 3f96…, on @user_script:1.`
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

/// How a wrapped error begins.
const WRAPPED: &str = "Error running script";

/// What a script's user may not do is told without the code that it has elsewhere.
fn missing_right(code: &str, detail: &str) -> Option<&'static str> {
    (code == "ERR" && is_missing_right(detail)).then_some("NOPERM")
}

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
            CallErrorKind::Timeout => f.write_str(" did not answer in time")?,
            CallErrorKind::Disconnected => {
                f.write_str(" closed the connection before it answered")?;
            }
            CallErrorKind::Unreachable => f.write_str(" is not connected")?,
            CallErrorKind::BreakerOpen => {
                f.write_str(" failed too often and is left alone for a moment")?;
            }
            CallErrorKind::Closed => f.write_str(" was disconnected by us")?,
            CallErrorKind::Server(code) => write!(f, " answered {code}")?,
            CallErrorKind::Malformed => f.write_str(" gave an answer that makes no sense")?,
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl Error for CallError {}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        let made = if error.is_transient() {
            Self::transient(error.to_string())
        } else {
            Self::permanent(error.to_string())
        };
        made.with_kind(match error.kind() {
            CallErrorKind::Timeout => StoreErrorKind::Timeout,
            CallErrorKind::Disconnected | CallErrorKind::Unreachable | CallErrorKind::Closed => {
                StoreErrorKind::Unreachable
            }
            CallErrorKind::BreakerOpen => StoreErrorKind::Overloaded,
            CallErrorKind::Server(code) if DENIED.contains(&code.as_str()) => {
                StoreErrorKind::Denied
            }
            CallErrorKind::Server(code) if may_pass(code) => StoreErrorKind::Unable,
            CallErrorKind::Server(_) | CallErrorKind::Malformed => StoreErrorKind::Other,
        })
    }
}

/// Codes by which a server says that we may not.
const DENIED: [&str; 3] = ["NOPERM", "NOAUTH", "WRONGPASS"];

impl From<ConnectError> for StoreError {
    fn from(error: ConnectError) -> Self {
        let made = if error.needs_somebody() {
            Self::permanent(error.to_string())
        } else {
            Self::transient(error.to_string())
        };
        made.with_kind(match error.kind() {
            ConnectErrorKind::Unreachable => StoreErrorKind::Unreachable,
            ConnectErrorKind::Refused => StoreErrorKind::Denied,
            ConnectErrorKind::NotReady => StoreErrorKind::Unable,
            ConnectErrorKind::Settings | ConnectErrorKind::Tls | ConnectErrorKind::Version => {
                StoreErrorKind::Other
            }
        })
    }
}

/// Why Redis cannot be used. The text is for people and holds no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    kind: ConnectErrorKind,
    message: String,
}

/// What kept us from connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The settings contradict each other, or a certificate cannot be read.
    Settings,
    /// Nobody answers there.
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
    pub(crate) fn new(kind: ConnectErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What kept us from connecting.
    pub fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// Whether it does not pass by itself.
    pub(crate) fn needs_somebody(&self) -> bool {
        use ConnectErrorKind::{Refused, Settings, Tls, Version};
        matches!(self.kind, Settings | Tls | Refused | Version)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ConnectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_classes() {
        for code in ["MOVED", "OOM", "NOSCRIPT", "LOADING", "READONLY", "NOPERM"] {
            assert_eq!(class_of(code), CallEffect::NotExecuted, "{code}");
        }
        for code in ["ERR", "WRONGTYPE", "ANYTHING"] {
            assert_eq!(class_of(code), CallEffect::Executed, "{code}");
        }
    }

    #[test]
    fn an_error_that_an_old_server_wrapped_is_found() {
        let old = "Error running script (call to f_0bc5): @user_script:1: @user_script: 1: \
                   -OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(nested_code("ERR", old), Some("OOM"));
        assert_eq!(nested_code("ERR", "Error running script: -nonsense"), None);
        assert_eq!(nested_code("OOM", old), None);
        assert_eq!(nested_code("ERR", "unknown command: -OOM"), None);
    }

    #[test]
    fn what_ends_a_script_half_way_may_have_had_an_effect() {
        let class = |reply: &str| {
            let reply = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
            let redis::Value::ServerError(error) = reply else {
                panic!("an error: {reply:?}");
            };
            let error = CallError::server(&error);
            let code = error.code().unwrap().to_owned();
            (code, error.class())
        };
        let place = "script: 3f969afca22762bce4419e9bdbff4cb40e7c165e, on @user_script:1.";
        let old = "ERR Error running script (call to f_0bc5): @user_script:1: @user_script: 1:";
        for (reply, code) in [
            (format!("NOPERM no permissions {place}"), "NOPERM"),
            (format!("CROSSSLOT keys {place}"), "CROSSSLOT"),
            (format!("TRYAGAIN {place}"), "TRYAGAIN"),
            (format!("BUSY {place}"), "BUSY"),
            (
                format!("ERR The user executing the script can't run this command {place}"),
                "NOPERM",
            ),
            (
                format!("ERR ACL failure in script: User u has no permissions {place}"),
                "NOPERM",
            ),
            (
                format!("{old} The user executing the script can't run this command"),
                "NOPERM",
            ),
            (format!("{old} -NOPERM no permissions"), "NOPERM"),
            // A script may tell it instead of failing.
            (
                "ERR The user executing the script can't run this command".to_owned(),
                "NOPERM",
            ),
        ] {
            let expected = (code.to_owned(), CallEffect::Executed);
            assert_eq!(class(&reply), expected, "{reply}");
        }
        for code in FIRST_WRITE {
            let expected = (code.to_owned(), CallEffect::NotExecuted);
            assert_eq!(class(&format!("{code} not now")), expected);
            assert_eq!(class(&format!("{code} not now {place}")), expected);
            assert_eq!(class(&format!("{old} -{code} not now")), expected);
        }
        for reply in [
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "NOSCRIPT No matching script. Please use EVAL.",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL.",
        ] {
            assert_eq!(class(reply).1, CallEffect::NotExecuted, "{reply}");
        }
    }

    #[test]
    fn a_right_that_a_script_lacks_is_told_from_other_errors() {
        let detail = "The user executing the script can't run this command or subcommand script: 3";
        assert_eq!(missing_right("ERR", detail), Some("NOPERM"));
        assert_eq!(missing_right("ERR", "value is not an integer"), None);
        assert_eq!(missing_right("OOM", detail), None);
    }

    #[test]
    fn what_somebody_has_to_mend_is_permanent() {
        let of = |code: &str| {
            CallError::new(class_of(code), CallErrorKind::Server(code.to_owned()), "")
                .is_transient()
        };
        for code in ["NOPERM", "NOAUTH", "WRONGPASS", "WRONGTYPE", "ERR"] {
            assert!(!of(code), "{code}");
        }
        for code in ["OOM", "LOADING", "TRYAGAIN"] {
            assert!(of(code), "{code}");
        }
        let timeout = CallError::new(CallEffect::Ambiguous, CallErrorKind::Timeout, "");
        assert!(StoreError::from(timeout).is_transient());
    }

    #[test]
    fn errors_are_for_people() {
        let error = CallError::new(
            CallEffect::NotExecuted,
            CallErrorKind::Server("OOM".to_owned()),
            "no room",
        )
        .at(&Address::new("::1", 7000));
        assert_eq!(
            error.to_string(),
            "Redis at [::1]:7000 answered OOM: no room"
        );
    }
}
