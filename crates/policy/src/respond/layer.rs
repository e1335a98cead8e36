//! Settings laid over one another: a profile, the whole configuration, a policy, a limit.

use super::XRateLimit;
use super::{
    Dialect, LimitHeaderValue, NameVisibility, Placeholder, Profile, RefusalStyle, ResetFormat,
    Respond, RlsHeaders, Wording, XField,
};
use crate::guard::AnswerReason;
use std::sync::Arc;

/// Settings of which any may be left open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) headers: Option<Vec<Dialect>>,
    pub(crate) fields: Option<Vec<XField>>,
    pub(crate) limit: Option<LimitHeaderValue>,
    pub(crate) reset: Option<ResetFormat>,
    pub(crate) retry_after: Option<bool>,
    pub(crate) correlation: Option<String>,
    pub(crate) names: Option<NameVisibility>,
    pub(crate) rls: Option<RlsHeaders>,
    pub(crate) refusal: RefusalLayer,
    /// Over that, where a guard refuses because whoever asks is blocked.
    pub(crate) blocked: Option<RefusalLayer>,
    /// The same where it refuses an address on a blacklist.
    pub(crate) blacklisted: Option<RefusalLayer>,
}

/// A setting that can be left open, and that a layer above can also take back.
#[derive(Clone, Debug, Default)]
pub(crate) enum Layered<T> {
    /// Left open.
    #[default]
    Open,
    /// Taken back.
    Nothing,
    /// Said.
    This(T),
}

/// Those of a refusal alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusalLayer {
    pub(crate) status: Option<u16>,
    pub(crate) type_uri: Layered<String>,
    pub(crate) message: Layered<Wording>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Option<Wording>,
}

// === impl Layer ===

impl Layer {
    /// What lies under everything: the default profile, and what no profile speaks of.
    pub(crate) fn bottom() -> Self {
        let settings = Self {
            retry_after: Some(true),
            correlation: Some("x-correlation-id".to_owned()),
            names: Some(NameVisibility::Shown),
            rls: Some(RlsHeaders::Refused),
            ..Self::default()
        };
        settings.with(&Profile::Default.layer())
    }

    /// These settings with `upper` laid over them: what it says counts.
    #[must_use]
    pub(crate) fn with(self, upper: &Self) -> Self {
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

    /// What a refusal of a guard for this reason looks like: as any other, but for what is said of
    /// limits, which are not exceeded.
    pub(crate) fn refusal_for(&self, reason: AnswerReason) -> RefusalLayer {
        let own = match reason {
            AnswerReason::Blacklisted => &self.blacklisted,
            _ => &self.blocked,
        };
        let own = own.clone().unwrap_or_default();
        self.refusal.clone().for_guards().with(&own)
    }

    /// What they amount to. What is still open, which [`bottom`](Self::bottom) leaves nothing of, is
    /// empty.
    pub(crate) fn respond(&self) -> Respond {
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

// === impl Said ===

impl<T> Layered<T> {
    /// What is written; left open where nothing is.
    pub(crate) fn written(setting: Option<T>) -> Self {
        setting.map_or(Self::Open, Self::This)
    }

    /// All that there is to say; taken back where there is nothing.
    pub(crate) fn all(setting: Option<T>) -> Self {
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
    /// These settings with `upper` laid over them.
    #[must_use]
    pub(crate) fn with(self, upper: &Self) -> Self {
        Self {
            status: upper.status.or(self.status),
            type_uri: upper.type_uri.clone().or(self.type_uri),
            message: upper.message.clone().or(self.message),
            content_type: upper.content_type.clone().or(self.content_type),
            body: upper.body.clone().or(self.body),
        }
    }

    /// The same without what is said of limits. A body that says the same whatever is the case was
    /// written for limits; the standard one tells the truth.
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
            type_uri: Layered::Nothing,
            message: Layered::Nothing,
            content_type,
            body,
        }
    }

    /// What they amount to.
    pub(crate) fn refusal(&self) -> RefusalStyle {
        RefusalStyle {
            status: self.status.unwrap_or(429),
            type_uri: self.type_uri.clone().get(),
            message: self.message.clone().get(),
            content_type: self.content_type.clone().unwrap_or_default(),
            body: self.body.clone().unwrap_or_default(),
        }
    }
}
