//! From the head of a request to what becomes of it.

use crate::answer::{self, Answer};
use crate::extract::Extractors;
use crate::future::Decided;
use crate::peer;
use crate::{Observation, RequestHead};
use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate::{CheckError, Decision, Limiter, Rules, Store};
use tidegate_http::question::{Head, Question};

/// What all services of a layer share. Nothing that decides changes once the layer is in use.
pub(crate) struct Shared<S> {
    pub(crate) limiter: Limiter<S>,
    /// The policy that is asked; the first one where absent.
    pub(crate) policy: Option<String>,
    pub(crate) extractors: Extractors,
    pub(crate) observer: Option<Arc<Observer>>,
    /// Whether it was said that a peer is not known.
    is_warned: AtomicBool,
}

type Observer = dyn Fn(Observation<'_>) + Send + Sync;

/// What becomes of a request.
pub(crate) enum Verdict {
    /// The application gets it.
    Pass(Decision),
    /// We answer ourselves.
    Answer(Answer),
}

// By hand, because the store need not be one that can be cloned.
impl<S> Clone for Shared<S> {
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

impl<S: Store> Shared<S> {
    pub(crate) fn new(limiter: Limiter<S>) -> Self {
        Self {
            limiter,
            policy: None,
            extractors: Extractors::default(),
            observer: None,
            is_warned: AtomicBool::new(false),
        }
    }

    /// Decides without waiting, if neither the store nor a limit makes it wait; `None` means that
    /// nothing was done.
    #[inline]
    pub(crate) fn decide_at_once(
        &self,
        head: RequestHead<'_>,
        peer: Option<IpAddr>,
    ) -> Option<Verdict> {
        // Spares finding out who asks only to find that the store is elsewhere.
        if self.limiter.waits() {
            return None;
        }
        let rules = match self.limiter.rules() {
            Ok(rules) => rules,
            Err(error) => return Some(self.verdict(head, Err(error), None, None)),
        };
        // The same for a policy that lets requests wait: a token is not to be verified twice.
        if rules.may_wait(self.policy.as_deref()) {
            return None;
        }
        let question = self.question(&rules, head, peer);
        let pairs = question.pairs();
        let decided = self
            .limiter
            .check_at_once(&rules, &question.request(&pairs))?;
        Some(self.verdict(head, decided, Some(&rules), question.token_refused()))
    }

    /// Decides by a store across the network, or by limits that let wait. Owns the head meanwhile, and gives it back if the
    /// request passes; a body need not be one that can be shared, so it has to stay behind.
    pub(crate) async fn decide(self: Arc<Self>, parts: Parts, peer: Option<IpAddr>) -> Decided {
        let head = RequestHead::of_parts(&parts);
        let verdict = match self.limiter.rules() {
            Ok(rules) => {
                let question = self.question(&rules, head, peer);
                let pairs = question.pairs();
                let request = question.request(&pairs);
                let decided = self.limiter.check_by(&rules, &request).await;
                self.verdict(head, decided, Some(&rules), question.token_refused())
            }
            Err(error) => self.verdict(head, Err(error), None, None),
        };
        match verdict {
            Verdict::Pass(decision) => Decided::Pass(parts, decision),
            Verdict::Answer(answer) => Decided::Answer(answer),
        }
    }

    /// What limits see of the request: what `client` finds, and over it what the application tells.
    #[inline]
    fn question<'a>(
        &'a self,
        rules: &'a Rules,
        head: RequestHead<'a>,
        peer: Option<IpAddr>,
    ) -> Question<'a> {
        let told = &self.extractors;
        let peer = match &told.peer {
            Some(peer) => peer(head),
            None => peer.or_else(|| peer::noted(head)),
        };
        if peer.is_none() {
            self.miss_peer(rules);
        }
        let seen = Head {
            method: head.method(),
            uri: told.target(head),
            headers: head.headers(),
            peer,
        };
        let mut question = Question::direct(rules, self.policy.as_deref(), seen);
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
    ) -> Verdict {
        if let Some(observer) = &self.observer {
            observer(Observation {
                head,
                decided: decided.as_ref(),
                token_refused,
            });
        }
        match decided {
            Ok(decision) if decision.is_allowed() => Verdict::Pass(decision),
            Ok(decision) => Verdict::Answer(answer::refused(&decision, head)),
            Err(_) => {
                let policy = rules.and_then(|rules| rules.policy(self.policy.as_deref()));
                Verdict::Answer(answer::undecided(policy, head))
            }
        }
    }
}
