//! The response to a client: headers, status and body, as data. HTTP frontends write them.
//!
//! | module | contents |
//! |---|---|
//! | this one | the form of a policy's responses |
//! | `wording` | text with placeholders |
//! | `media` | content types, and the escaping of values in them |
//! | `profile` | the responses of other systems, as settings |
//! | `layer` | settings that override one another |
//! | `reason` | the reason of a response |
//! | `header_names` | the name of a band, and its quota, in header fields |

mod header_names;
mod layer;
mod media;
mod profile;
mod reason;
mod wording;

pub use header_names::HeaderNames;
pub use layer::{Layer, LayeredSetting, RefusalLayer};
pub use media::Escaping;
pub use profile::Profile;
pub use reason::AnswerReason;
pub use wording::{Placeholder, Wording, WordingPiece};

use std::sync::{Arc, LazyLock};

/// The form of a policy's responses: the headers that report limits to the client, and the form of a refusal.
///
/// ```
/// use tidegate_policy::respond::{Dialect, Respond};
///
/// let respond = Respond::default();
/// assert_eq!(respond.headers, [Dialect::XRateLimit, Dialect::Draft11]);
/// assert_eq!(respond.refusal.status, 429);
/// assert_eq!(respond.refusal.content_type, "application/problem+json");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Respond {
    /// The families of header fields, each at most once.
    pub headers: Vec<Dialect>,
    /// The settings of [`Dialect::XRateLimit`].
    pub x_ratelimit: XRateLimit,
    /// True if refusals carry `Retry-After`.
    pub retry_after: bool,
    /// The header, in lower case, that carries the correlation id.
    pub correlation: String,
    /// The visibility of policy and limit names to clients.
    pub names: NameVisibility,
    /// The responses for which Envoy's rate limit service returns headers to add.
    pub rls: RlsHeaders,
    /// The form of a refusal, unless the limit that refuses overrides it.
    pub refusal: Arc<RefusalStyle>,
    /// The form of a refusal by a guard because the client is blocked.
    pub blocked: Arc<RefusalStyle>,
    /// The form of a refusal by a guard because the address is on a blacklist.
    pub blacklisted: Arc<RefusalStyle>,
}

/// A family of header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`: the de facto standard.
    XRateLimit,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset`: draft 03 of the IETF standard.
    Draft03,
    /// `RateLimit-Policy` and `RateLimit`: draft 11 of it, and all drafts since 08.
    Draft11,
}

/// The settings of the fields that begin with `X-RateLimit-`, of which several variants are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XRateLimit {
    /// The fields that are sent, each at most once.
    pub fields: Vec<XField>,
    /// The value of `X-RateLimit-Limit`.
    pub limit: LimitHeaderValue,
    /// The format of `X-RateLimit-Reset`.
    pub reset: ResetFormat,
}

/// One of the fields that begin with `X-RateLimit-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XField {
    /// `X-RateLimit-Limit`: the total amount.
    Limit,
    /// `X-RateLimit-Remaining`: the amount that is left.
    Remaining,
    /// `X-RateLimit-Reset`: the time at which the bucket is full again.
    Reset,
    /// `X-RateLimit-Type`: `consumer` or `route`, depending on the key of the limit. A client without a
    /// consumer, which is counted by address, gets `route`.
    Type,
}

/// The value of `X-RateLimit-Limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitHeaderValue {
    /// The capacity of the bucket.
    #[default]
    Capacity,
    /// Whole units per second, at least 1.
    PerSecond,
}

/// The format of `X-RateLimit-Reset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetFormat {
    /// Seconds since the Unix epoch.
    #[default]
    Epoch,
    /// Seconds from now.
    Delta,
    /// An instant such as `2023-11-14T22:13:20Z`.
    Rfc3339,
}

/// The visibility of policy and limit names to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameVisibility {
    /// Clients see the names.
    #[default]
    Shown,
    /// Clients see numbers, counted from 1 in the order written.
    Hidden,
}

/// The responses for which Envoy's rate limit service returns headers to add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RlsHeaders {
    /// Refusals only: responses that allow stay small, and Envoy may write its own headers.
    #[default]
    Refused,
    /// All responses.
    Always,
    /// No response.
    None,
}

/// The form of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStyle {
    /// The status, 400 to 599.
    pub status: u16,
    /// The `type` of the problem. Default: the registered one.
    pub type_uri: Option<String>,
    /// The text of `{message}` where a limit is exceeded. Default: by status.
    pub message: Option<Wording>,
    /// The content type, a valid header value.
    pub content_type: String,
    /// The body.
    pub body: Wording,
}

// === impl Respond ===

impl Respond {
    /// Returns the form of a refusal for this reason, unless the limit or the guard that refuses overrides
    /// it.
    pub fn refusal_for(&self, reason: AnswerReason) -> &RefusalStyle {
        match reason {
            AnswerReason::Blocked => &self.blocked,
            AnswerReason::Blacklisted => &self.blacklisted,
            _ => &self.refusal,
        }
    }

    /// Returns the form of responses without any configuration.
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Respond> = LazyLock::new(Respond::default);
        &STANDARD
    }

    /// Returns the responses of one of the known [profiles](Profile).
    pub fn of(profile: Profile) -> Self {
        Layer::bottom().with(&profile.layer()).respond()
    }
}

impl Default for Respond {
    fn default() -> Self {
        Self::of(Profile::Default)
    }
}

// === impl RefusalStyle ===

impl RefusalStyle {
    /// Returns the escaping of values in the body.
    pub fn escaping(&self) -> Escaping {
        Escaping::of(&self.content_type)
    }
}
