//! Settings that override one another: a profile, the whole configuration, a policy, a limit.

use super::{AnswerReason, XRateLimit};
use super::{
    Dialect, LimitHeaderValue, NameVisibility, Placeholder, Profile, RefusalStyle, ResetFormat,
    Respond, RlsHeaders, Wording, XField,
};
use std::sync::Arc;

/// Settings, any of which may be unset.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// The families of header fields.
    pub headers: Option<Vec<Dialect>>,
    /// The fields of `X-RateLimit-*`.
    pub fields: Option<Vec<XField>>,
    /// The meaning of `X-RateLimit-Limit`.
    pub limit: Option<LimitHeaderValue>,
    /// The format of `X-RateLimit-Reset`.
    pub reset: Option<ResetFormat>,
    /// True if refusals carry `Retry-After`.
    pub retry_after: Option<bool>,
    /// The header with the correlation id.
    pub correlation: Option<String>,
    /// The visibility of names.
    pub names: Option<NameVisibility>,
    /// The responses with headers for Envoy.
    pub rls: Option<RlsHeaders>,
    /// The form of a refusal.
    pub refusal: RefusalLayer,
    /// Overrides `refusal` where a guard refuses because the client is blocked.
    pub blocked: Option<RefusalLayer>,
    /// Overrides `refusal` where a guard refuses an address on a blacklist.
    pub blacklisted: Option<RefusalLayer>,
}

/// A setting that can be unset, and that a higher layer can also clear.
#[derive(Clone, Debug, Default)]
pub enum LayeredSetting<T> {
    /// Unset: the lower layer applies.
    #[default]
    Open,
    /// Cleared: the value of the lower layer is removed.
    Nothing,
    /// Set to this value.
    This(T),
}

/// The settings of a refusal.
#[derive(Clone, Debug, Default)]
pub struct RefusalLayer {
    /// The status.
    pub status: Option<u16>,
    /// The `type` of the problem.
    pub type_uri: LayeredSetting<String>,
    /// The text of `{message}`.
    pub message: LayeredSetting<Wording>,
    /// The content type.
    pub content_type: Option<String>,
    /// The body.
    pub body: Option<Wording>,
}

// === impl Layer ===

impl Layer {
    /// Returns the lowest layer: the default profile, and the settings that no profile has.
    pub fn bottom() -> Self {
        let settings = Self {
            retry_after: Some(true),
            correlation: Some("x-correlation-id".to_owned()),
            names: Some(NameVisibility::Shown),
            rls: Some(RlsHeaders::Refused),
            ..Self::default()
        };
        settings.with(&Profile::Default.layer())
    }

    /// Returns these settings overridden by those that `upper` sets.
    #[must_use]
    pub fn with(self, upper: &Self) -> Self {
        Self {
            headers: upper.headers.clone().or(self.headers),
            fields: upper.fields.clone().or(self.fields),
            limit: upper.limit.or(self.limit),
            reset: upper.reset.or(self.reset),
            retry_after: upper.retry_after.or(self.retry_after),
            correlation: upper.correlation.clone().or(self.correlation),
            names: upper.names.or(self.names),
            rls: upper.rls.or(self.rls),
            refusal: self.refusal.with(&upper.refusal),
            blocked: upper.blocked.clone().or(self.blocked),
            blacklisted: upper.blacklisted.clone().or(self.blacklisted),
        }
    }

    /// Returns the form of a guard's refusal for this reason. It is that of any refusal, without the texts
    /// about exceeded limits.
    pub fn refusal_for(&self, reason: AnswerReason) -> RefusalLayer {
        let own = match reason {
            AnswerReason::Blacklisted => &self.blacklisted,
            _ => &self.blocked,
        };
        let own = own.clone().unwrap_or_default();
        self.refusal.clone().for_guards().with(&own)
    }

    /// Resolves the settings. [`bottom`](Self::bottom) sets all of them; any that is still unset becomes
    /// empty.
    pub fn respond(&self) -> Respond {
        Respond {
            headers: self.headers.clone().unwrap_or_default(),
            x_ratelimit: XRateLimit {
                fields: self.fields.clone().unwrap_or_default(),
                limit: self.limit.unwrap_or_default(),
                reset: self.reset.unwrap_or_default(),
            },
            retry_after: self.retry_after.unwrap_or(true),
            correlation: self.correlation.clone().unwrap_or_default(),
            names: self.names.unwrap_or_default(),
            rls: self.rls.unwrap_or_default(),
            refusal: Arc::new(self.refusal.refusal()),
            blocked: Arc::new(self.refusal_for(AnswerReason::Blocked).refusal()),
            blacklisted: Arc::new(self.refusal_for(AnswerReason::Blacklisted).refusal()),
        }
    }
}

// === impl Layered ===

impl<T> LayeredSetting<T> {
    /// Returns the value of a configuration, or unset if it is absent.
    pub fn written(setting: Option<T>) -> Self {
        setting.map_or(Self::Open, Self::This)
    }

    /// Returns the value of a complete set, or cleared if it is absent.
    pub fn all(setting: Option<T>) -> Self {
        setting.map_or(Self::Nothing, Self::This)
    }

    fn or(self, below: Self) -> Self {
        match self {
            Self::Open => below,
            said => said,
        }
    }

    fn get(self) -> Option<T> {
        match self {
            Self::Open | Self::Nothing => None,
            Self::This(said) => Some(said),
        }
    }
}

// === impl RefusalLayer ===

impl RefusalLayer {
    /// Returns these settings overridden by those that `upper` sets.
    #[must_use]
    pub fn with(self, upper: &Self) -> Self {
        Self {
            status: upper.status.or(self.status),
            type_uri: upper.type_uri.clone().or(self.type_uri),
            message: upper.message.clone().or(self.message),
            content_type: upper.content_type.clone().or(self.content_type),
            body: upper.body.clone().or(self.body),
        }
    }

    /// Removes the texts about limits. A body without any placeholder for the reason was written for limits,
    /// so the default body replaces it: that one states the real reason.
    fn for_guards(self) -> Self {
        use Placeholder::{Detail, Message, Status, Title, Type};
        let tells = |body: &Wording| body.has(&[Detail, Message, Status, Title, Type]);
        let standard = Profile::Default.layer().refusal;
        let is_honest = self.body.as_ref().is_some_and(tells);
        let (content_type, body) = if is_honest {
            (self.content_type, self.body)
        } else {
            (standard.content_type, standard.body)
        };
        Self {
            status: self.status,
            type_uri: LayeredSetting::Nothing,
            message: LayeredSetting::Nothing,
            content_type,
            body,
        }
    }

    /// Resolves the settings.
    pub fn refusal(&self) -> RefusalStyle {
        RefusalStyle {
            status: self.status.unwrap_or(429),
            type_uri: self.type_uri.clone().get(),
            message: self.message.clone().get(),
            content_type: self.content_type.clone().unwrap_or_default(),
            body: self.body.clone().unwrap_or_default(),
        }
    }
}
