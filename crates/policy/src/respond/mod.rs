//! What a client is told: headers, status and body, as data. Whoever speaks HTTP writes them.
//!
//! | module | what it is |
//! |---|---|
//! | this one | how a policy answers |
//! | `wording` | text with placeholders |
//! | `media` | content types, and how values are escaped in them |
//! | `profile` | answers that other systems give, written in the same terms |
//! | `layer` | settings laid over one another |
//! | `spoken` | what a band is called, and its quota as header fields spell it |

mod layer;
mod media;
mod profile;
mod spoken;
mod wording;

pub(crate) use layer::{Layer, Layered, RefusalLayer};
pub use media::Escaping;
pub use profile::Profile;
pub use spoken::HeaderNames;
pub(crate) use spoken::speak;
pub use wording::{Placeholder, Wording, WordingPiece};

use crate::config::ConfigErrors;
use crate::guard::AnswerReason;
use std::sync::{Arc, LazyLock};

/// How a policy answers: which headers tell the client about its limits, and what a refusal looks
/// like.
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
    /// The dialects of header fields, each at most once.
    pub headers: Vec<Dialect>,
    /// How [`Dialect::XRateLimit`] is spoken.
    pub x_ratelimit: XRateLimit,
    /// Whether refusals carry `Retry-After`.
    pub retry_after: bool,
    /// The header, in lower case, that carries the correlation id.
    pub correlation: String,
    /// Whether clients see what policies and limits are called.
    pub names: NameVisibility,
    /// When Envoy is told, by its rate limit service, which headers to add to a response.
    pub rls: RlsHeaders,
    /// What a refusal looks like, where the limit that refuses does not say otherwise.
    pub refusal: Arc<RefusalStyle>,
    /// The same where a guard refuses because whoever asks is blocked.
    pub blocked: Arc<RefusalStyle>,
    /// The same where a guard refuses an address on a blacklist.
    pub blacklisted: Arc<RefusalStyle>,
}

/// A family of header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`: by custom.
    XRateLimit,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset`: draft 03 of the standard to be.
    Draft03,
    /// `RateLimit-Policy` and `RateLimit`: draft 11 of it, and those since 08.
    Draft11,
}

/// How the fields that begin with `X-RateLimit-` are spoken, for custom knows several ways.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XRateLimit {
    /// Which of the fields, each at most once.
    pub fields: Vec<XField>,
    /// What `X-RateLimit-Limit` counts.
    pub limit: LimitHeaderValue,
    /// How `X-RateLimit-Reset` is written.
    pub reset: ResetFormat,
}

/// One of the fields that begin with `X-RateLimit-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XField {
    /// `X-RateLimit-Limit`: how much there is.
    Limit,
    /// `X-RateLimit-Remaining`: how much is left of it.
    Remaining,
    /// `X-RateLimit-Reset`: when the bucket is as good as new.
    Reset,
    /// `X-RateLimit-Type`: `consumer` or `route`, by what the limit looks at: who has no consumer and is
    /// counted by address is told `route`.
    Type,
}

/// What `X-RateLimit-Limit` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitHeaderValue {
    /// The most that can be there at once.
    #[default]
    Capacity,
    /// Units a second, whole, at least 1.
    PerSecond,
}

/// How `X-RateLimit-Reset` is written.
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

/// Whether clients see what policies and limits are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameVisibility {
    /// They do.
    #[default]
    Shown,
    /// They see numbers, counted from 1 in the order written.
    Hidden,
}

/// When Envoy is told, by its rate limit service, which headers to add to a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RlsHeaders {
    /// To refusals: answers that allow stay small, and Envoy may write headers of its own.
    #[default]
    Refused,
    /// To all.
    Always,
    /// To none.
    None,
}

/// What a refusal looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalStyle {
    /// The status, 400 to 599.
    pub status: u16,
    /// The `type` of the problem; the registered one unless told.
    pub type_uri: Option<String>,
    /// What `{message}` says where a limit is exceeded; by status unless told.
    pub message: Option<Wording>,
    /// The content type: a valid header value.
    pub content_type: String,
    /// The body.
    pub body: Wording,
}

// === impl Respond ===

impl Respond {
    /// What a refusal for this reason looks like, where neither the limit nor the guard that refuses
    /// says otherwise.
    pub fn refusal_for(&self, reason: AnswerReason) -> &RefusalStyle {
        match reason {
            AnswerReason::Blocked => &self.blocked,
            AnswerReason::Blacklisted => &self.blacklisted,
            _ => &self.refusal,
        }
    }

    /// How answers look where nothing is configured.
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Respond> = LazyLock::new(Respond::default);
        &STANDARD
    }

    /// Reads what would stand under `respond` in a configuration, in YAML or JSON. Nothing is looked
    /// up in the environment.
    ///
    /// ```
    /// use tidegate_policy::Respond;
    ///
    /// let respond = Respond::from_yaml("{ profile: gateway, names: hidden }")?;
    /// assert_eq!(respond.refusal.content_type, "application/json");
    /// assert!(Respond::from_yaml("body: '{titel}'").is_err());
    /// # Ok::<(), tidegate_policy::ConfigErrors>(())
    /// ```
    pub fn from_yaml(text: &str) -> Result<Self, ConfigErrors> {
        crate::config::parse_respond(text, "respond")
    }

    /// Answers as one of the known [profiles](Profile) gives them.
    pub fn of(profile: Profile) -> Self {
        Layer::bottom().with(&profile.layer()).respond()
    }
}

impl Default for Respond {
    fn default() -> Self {
        Self::of(Profile::Default)
    }
}

// === impl Refusal ===

impl RefusalStyle {
    /// How values are escaped in the body.
    pub fn escaping(&self) -> Escaping {
        Escaping::of(&self.content_type)
    }
}
