//! From the head of a request to what becomes of it.

use crate::RequestHead;
use crate::answer::{self, Answer};
use crate::extract::Extractors;
use crate::future::Asked;
use crate::peer;
use http::HeaderMap;
use http::request::Parts;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Limiter, Rules, Store};
use tidegate_http::question::{Head, Question};

/// What all services of a layer share. Nothing of it changes once the layer is in use.
pub(crate) struct Shared<S> {
    pub(crate) limiter: Limiter<S>,
    /// The policy that is asked; the first one where absent.
    pub(crate) policy: Option<String>,
    pub(crate) extractors: Extractors,
    pub(crate) observer: Option<Arc<Observer>>,
}

type Observer = dyn Fn(Result<&Decision, &CheckError>) + Send + Sync;

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
        }
    }

    /// Decides without waiting, if the store does; `None` means that nothing was done.
    #[inline]
    pub(crate) fn decide_at_once(
        &self,
        head: RequestHead<'_>,
        peer: Option<IpAddr>,
    ) -> Option<Verdict> {
        // Spares finding out who asks only to find that the store is elsewhere.
        if self.limiter.store().can_fail() {
            return None;
        }
        let rules = match self.limiter.rules() {
            Ok(rules) => rules,
            Err(error) => return Some(self.verdict(Err(error), None, head.headers())),
        };
        let question = self.question(&rules, head, peer);
        let pairs = question.pairs();
        let decided = self
            .limiter
            .check_at_once(&rules, &question.request(&pairs))?;
        Some(self.verdict(decided, Some(&rules), head.headers()))
    }

    /// Decides by a store across the network. Owns the head meanwhile, and gives it back if the
    /// request passes; a body need not be one that can be shared, so it has to stay behind.
    pub(crate) async fn decide(self: Arc<Self>, parts: Parts, peer: Option<IpAddr>) -> Asked {
        let (decided, rules) = match self.limiter.rules() {
            Ok(rules) => {
                let head = RequestHead::of_parts(&parts);
                let question = self.question(&rules, head, peer);
                let pairs = question.pairs();
                let request = question.request(&pairs);
                let decided = self.limiter.check_by(&rules, &request).await;
                (decided, Some(Arc::clone(&rules)))
            }
            Err(error) => (Err(error), None),
        };
        match self.verdict(decided, rules.as_deref(), &parts.headers) {
            Verdict::Pass(decision) => Asked::Pass(parts, decision),
            Verdict::Answer(answer) => Asked::Answer(answer),
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
        let seen = Head {
            method: head.method(),
            uri: head.uri(),
            headers: head.headers(),
            peer,
        };
        let mut question = Question::direct(rules, self.policy.as_deref(), seen);
        told.tell(head, &mut question);
        question
    }

    #[inline]
    fn verdict(
        &self,
        decided: Result<Decision, CheckError>,
        rules: Option<&Rules>,
        headers: &HeaderMap,
    ) -> Verdict {
        if let Some(observer) = &self.observer {
            observer(decided.as_ref());
        }
        match decided {
            Ok(decision) if decision.is_allowed() => Verdict::Pass(decision),
            Ok(decision) => Verdict::Answer(answer::refused(&decision, headers)),
            Err(_) => {
                let policy = rules.and_then(|rules| rules.policy(self.policy.as_deref()));
                Verdict::Answer(answer::undecided(policy, headers))
            }
        }
    }
}
