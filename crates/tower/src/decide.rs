//! Decides a request by its head.

use crate::answer::{self, LayerResponse};
use crate::custom::ResponseHandlers;
use crate::extract::Extractors;
use crate::future::DecidedRequest;
use crate::peer;
use crate::{Observation, RequestHead};
use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{AskPurpose, Attempt, CheckError, Decision, Limiter, PendingDecision, Rules, Store};
use tidegate_http::question::{HttpQuestion, RequestHeadRef};

/// The state that all services of a layer share. Immutable once the layer is in use.
pub(crate) struct LayerInner<S> {
    pub(crate) limiter: Limiter<S>,
    /// The name of the policy; `None` means the first.
    pub(crate) policy: Option<String>,
    pub(crate) extractors: Extractors,
    pub(crate) observer: Option<Arc<DecisionObserver>>,
    pub(crate) handlers: ResponseHandlers,
}

type DecisionObserver = dyn Fn(Observation<'_>) + Send + Sync;

/// The verdict on a request.
pub(crate) enum LayerVerdict {
    /// The application gets the request.
    Pass(Decision),
    /// The layer responds itself.
    Answer(LayerResponse),
}

/// The result of an attempt to decide.
pub(crate) enum LayerAttempt<S> {
    /// Decided.
    Done(LayerVerdict),
    /// The store, or a limit, makes the request wait. The text is the reason why its token was rejected, if
    /// it was.
    Pending(PendingDecision<S>, Option<&'static str>),
}

// By hand, because the store need not be one that can be cloned.
impl<S> Clone for LayerInner<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            policy: self.policy.clone(),
            extractors: self.extractors.clone(),
            observer: self.observer.clone(),
            handlers: self.handlers.clone(),
        }
    }
}

impl<S: Store> LayerInner<S> {
    pub(crate) fn new(limiter: Limiter<S>) -> Self {
        Self {
            limiter,
            policy: None,
            extractors: Extractors::default(),
            observer: None,
            handlers: ResponseHandlers::default(),
        }
    }

    /// Identifies the client and decides, at once if neither the store nor a limit makes it wait.
    #[inline]
    pub(crate) fn ask(&self, head: RequestHead<'_>, peer: Option<IpAddr>) -> LayerAttempt<S> {
        let rules = match self.limiter.rules() {
            Ok(rules) => rules,
            Err(error) => return LayerAttempt::Done(self.verdict(head, Err(error), None, None)),
        };
        let question = self.question(&rules, head, peer);
        let token_refused = question.token_refused();
        let pairs = question.pairs();
        let request = question.request(&pairs);
        let decided = match self.limiter.attempt(&rules, &request, AskPurpose::Pass) {
            Ok(Attempt::Done(decision)) => Ok(decision),
            Ok(Attempt::Pending(pending)) => return LayerAttempt::Pending(pending, token_refused),
            Err(error) => Err(error),
        };
        LayerAttempt::Done(self.verdict(head, decided, Some(&rules), token_refused))
    }

    /// Waits for a decision. Owns the head meanwhile, and returns it if the request passes. The body stays
    /// outside: it need not be `Sync`.
    pub(crate) async fn wait(
        self: Arc<Self>,
        parts: Parts,
        pending: PendingDecision<S>,
        token_refused: Option<&'static str>,
    ) -> DecidedRequest {
        let decided = pending.decision().await;
        let head = RequestHead::of_parts(&parts);
        match self.verdict(head, decided, Some(pending.rules()), token_refused) {
            LayerVerdict::Pass(decision) => DecidedRequest::Pass(parts, decision),
            LayerVerdict::Answer(answer) => DecidedRequest::Answer(answer),
        }
    }

    /// Returns the request as limits see it: the values found by `client`, overridden by those of the
    /// application.
    #[inline]
    fn question<'a>(
        &'a self,
        rules: &'a Rules,
        head: RequestHead<'a>,
        peer: Option<IpAddr>,
    ) -> HttpQuestion<'a> {
        let extractors = &self.extractors;
        let peer = match &extractors.peer {
            Some(peer) => peer(head),
            None => peer.or_else(|| peer::noted(head)),
        };
        let seen = RequestHeadRef {
            method: head.method(),
            uri: extractors.target(head),
            headers: head.headers(),
            peer,
        };
        let mut question = HttpQuestion::direct(rules, self.policy.as_deref(), seen);
        extractors.tell(head, &mut question);
        question
    }

    /// Returns the verdict on the request of `head`, and calls the observer. `rules` are those by which it
    /// was decided.
    #[inline]
    fn verdict(
        &self,
        head: RequestHead<'_>,
        decided: Result<Decision, CheckError>,
        rules: Option<&Rules>,
        token_refused: Option<&'static str>,
    ) -> LayerVerdict {
        if let Some(observer) = &self.observer {
            observer(Observation {
                head,
                decided: decided.as_ref(),
                token_refused,
            });
        }
        match decided {
            Ok(decision) if decision.is_allowed() => LayerVerdict::Pass(decision),
            Ok(decision) => LayerVerdict::Answer(answer::refused(&decision, head, &self.handlers)),
            Err(error) => {
                let policy = rules.and_then(|rules| rules.policy(self.policy.as_deref()));
                LayerVerdict::Answer(answer::undecided(policy, &error, head, &self.handlers))
            }
        }
    }
}
