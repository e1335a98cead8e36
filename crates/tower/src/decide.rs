//! From the head of a request to what becomes of it.

use crate::answer::{self, LayerResponse};
use crate::extract::Extractors;
use crate::future::DecidedRequest;
use crate::peer;
use crate::{Observation, RequestHead};
use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate::{AskPurpose, Attempt, CheckError, Decision, Limiter, PendingDecision, Rules, Store};
use tidegate_http::question::{HttpQuestion, RequestHeadRef};

/// What all services of a layer share. Nothing that decides changes once the layer is in use.
pub(crate) struct LayerInner<S> {
    pub(crate) limiter: Limiter<S>,
    /// The policy that is asked; the first one where absent.
    pub(crate) policy: Option<String>,
    pub(crate) extractors: Extractors,
    pub(crate) observer: Option<Arc<DecisionObserver>>,
    /// Whether it was said that a peer is not known.
    is_warned: AtomicBool,
}

type DecisionObserver = dyn Fn(Observation<'_>) + Send + Sync;

/// What becomes of a request.
pub(crate) enum LayerVerdict {
    /// The application gets it.
    Pass(Decision),
    /// We answer ourselves.
    Answer(LayerResponse),
}

/// The result of asking.
pub(crate) enum LayerAttempt<S> {
    /// Decided.
    Done(LayerVerdict),
    /// The store, or a limit, makes it wait; the token of the request was rejected for this reason, if one was.
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
            is_warned: AtomicBool::new(false),
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
            is_warned: AtomicBool::new(false),
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

    /// Waits for a decision. Owns the head meanwhile, and gives it back if the request passes; a body
    /// need not be one that can be shared, so it has to stay behind.
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

    /// What limits see of the request: what `client` finds, and over it what the application tells.
    #[inline]
    fn question<'a>(
        &'a self,
        rules: &'a Rules,
        head: RequestHead<'a>,
        peer: Option<IpAddr>,
    ) -> HttpQuestion<'a> {
        let told = &self.extractors;
        let peer = match &told.peer {
            Some(peer) => peer(head),
            None => peer.or_else(|| peer::noted(head)),
        };
        if peer.is_none() {
            self.miss_peer(rules);
        }
        let seen = RequestHeadRef {
            method: head.method(),
            uri: told.target(head),
            headers: head.headers(),
            peer,
        };
        let mut question = HttpQuestion::direct(rules, self.policy.as_deref(), seen);
        told.tell(head, &mut question);
        question
    }

    /// Says once that a peer is not known, if limits look at addresses: it is easily forgotten to
    /// tell, and nothing else would show it.
    #[cold]
    fn miss_peer(&self, rules: &Rules) {
        let policy = rules.policy(self.policy.as_deref());
        let Some(policy) = policy.filter(|policy| policy.reads_address()) else {
            return;
        };
        if !self.is_warned.swap(true, Relaxed) {
            tracing::warn!(
                policy = policy.name,
                "nobody tells who is at the other end of a connection, so limits by address take \
                 all such clients for one; with axum, serve with \
                 into_make_service_with_connect_info::<SocketAddr>(), elsewhere see `Who asks` in \
                 the documentation of tidegate-tower"
            );
        }
    }

    /// What becomes of the request of `head`. `rules` are those by which it was decided.
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
            Ok(decision) => LayerVerdict::Answer(answer::refused(&decision, head)),
            Err(_) => {
                let policy = rules.and_then(|rules| rules.policy(self.policy.as_deref()));
                LayerVerdict::Answer(answer::undecided(policy, head))
            }
        }
    }
}
