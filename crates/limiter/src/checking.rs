//! Deciding requests: at once where the store does, else across the network.

use crate::attempt::{Attempt, AttemptTerms, PendingDecision};
use crate::decision::{Decision, RequestLimits};
use crate::each;
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::purpose::AskPurpose;
use crate::question::{Buffers, NextStep, PreparedRequest};
use crate::repeated::Repeated;
use crate::rules::Rules;
use crate::waiting;
use std::cell::Cell;
use std::sync::Arc;
use tidegate_core::{Clock, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::Request;

thread_local! {
    // Buffers that stay warm, so that a decision allocates nothing. Taken and put back: what is decided
    // while they are lent would be handed out through this, and copied thrice.
    pub(crate) static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

impl<S: Store> Limiter<S> {
    /// Decides a request.
    ///
    /// A limit with `on_refusal: wait` may hold it back until it fits, for a bounded time and in order
    /// of arrival; see [`Decision::waited`]. That takes a runtime of `tokio` with its timers; without
    /// one, nobody waits. Dropping the future leaves the place to those behind it, who move up, and
    /// gives back all that was charged with it. In a store that others share, those behind it are those
    /// of this limiter and its clones, and the last place of these lapses.
    ///
    /// Where the store cannot tell, the limits that the request meets do as their `on_failure` says,
    /// and [`Decision::decided_by`] tells. It is an error only if one of them asks for that.
    pub async fn check(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Pass).await
    }

    /// Decides a request by `rules` for a purpose: at once, if neither the store nor a limit makes it wait.
    /// Otherwise returns it prepared, so that no guard is asked and no limit is matched twice. All
    /// frontends come this way; [`check`](Self::check), [`test`](Self::test) and [`report`](Self::report)
    /// are conveniences.
    ///
    /// A frontend identifies the client by `rules`; a reload in between does not change what the request is
    /// decided by. They must be this limiter's, from [`rules`](Self::rules); those before a reload will do.
    /// By another's, requests would be counted in buckets of this store as the policies of that one say; a
    /// debug build panics.
    ///
    /// ```
    /// use tidegate::{Attempt, Limiter, AskPurpose, Request};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 5/h }] }]")?;
    /// let rules = limiter.rules()?;
    /// let decision = match limiter.attempt(&rules, &Request::new(), AskPurpose::Pass)? {
    ///     Attempt::Done(decision) => decision,
    ///     Attempt::Pending(pending) => pending.decision().await?,
    /// };
    /// assert!(decision.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn attempt(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        purpose: AskPurpose,
    ) -> Result<Attempt<S>, CheckError> {
        self.attempt_with(rules, request, purpose, |decision| decision)
    }

    /// The same, but a decision that is there at once goes to `read`, from where it is made: it is large,
    /// and callers that only read it, or put it elsewhere, spare moving it about.
    #[inline]
    pub fn attempt_with<T>(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        terms: impl Into<AttemptTerms>,
        read: impl FnOnce(Decision) -> T,
    ) -> Result<Attempt<S, T>, CheckError> {
        debug_assert!(
            self.is_owner(rules.owner),
            "these rules are another limiter's"
        );
        let mut buffers = BUFFERS.take().unwrap_or_default();
        let mut attempted = self.attempt_in(&mut buffers, (rules, request), terms.into(), read);
        match &mut attempted {
            Ok(Attempt::Pending(pending)) => pending.lend(buffers),
            _ => BUFFERS.set(Some(buffers)),
        }
        attempted
    }

    #[inline]
    fn attempt_in<T>(
        &self,
        buffers: &mut Buffers,
        (rules, request): (&Arc<Rules>, &Request<'_>),
        AttemptTerms { purpose, is_behind }: AttemptTerms,
        read: impl FnOnce(Decision) -> T,
    ) -> Result<Attempt<S, T>, CheckError> {
        let mut prepared = if purpose == AskPurpose::Guards {
            let guarded = rules.guard(request, &mut buffers.guards);
            guarded.map(NextStep::Decided)
        } else {
            PreparedRequest::begin(rules, request, purpose, buffers)
        };
        if matches!(purpose, AskPurpose::Pass | AskPurpose::Guards)
            && let Ok(prepared) = &prepared
        {
            prepared.count(rules, request);
        }
        let pending = |question: &PreparedRequest<'_>| {
            Attempt::Pending(PendingDecision::new(self, rules, question.keep(request)))
        };
        // Looked at where it is: it is large, and moving it would be a good part of a decision.
        if let Ok(NextStep::Ask(question)) = &mut prepared
            && !question.may_wait
            && !is_behind
            && !self.waits()
        {
            question.ask(request, purpose);
            let told = self.answer_at_once(question, read);
            return Ok(told.map_or_else(|| pending(question), Attempt::Done));
        }
        Ok(match prepared? {
            NextStep::Ask(question) => pending(&question),
            NextStep::Decided(decision) => Attempt::Done(read(decision)),
        })
    }

    /// Decides a request that is decided again and again, such as each message of a connection, as
    /// [`check`](Self::check) does: by the rules that it was made with, and in order with others that
    /// wait.
    pub async fn check_repeated(&self, repeated: &mut Repeated) -> Result<Decision, CheckError> {
        let Repeated {
            rules,
            kept,
            buffers,
        } = repeated;
        let pairs = kept.pairs();
        let request = kept.request(&pairs);
        let decided = {
            let prepared = PreparedRequest::prepare(rules, &request, AskPurpose::Pass, buffers)?;
            prepared.count(rules, &request);
            match prepared {
                NextStep::Ask(question) => self.resolve(&question).await,
                NextStep::Decided(decision) => Ok(decision),
            }
        };
        buffers.let_go();
        decided
    }

    /// Whether a request would pass now, which takes nothing: every limit that it meets is asked whether
    /// what it costs would fit, 0 as 1. It waits for no limit.
    ///
    /// What comes of it holds for this moment only. Whoever wants to pass [checks](Self::check).
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 5/h }] }]")?;
    /// let request = Request::new();
    /// assert!(limiter.test(&request.cost(5)).await?.is_allowed());
    /// assert!(!limiter.test(&request.cost(6)).await?.is_allowed());
    ///
    /// // Seven were used all the same.
    /// assert!(limiter.report(&request.cost(7)).await?.is_allowed());
    /// assert!(!limiter.test(&request).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn test(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Test).await
    }

    /// Tells of a request what it has used already: all limits that it meets are charged with it,
    /// whether it fits or not, down to what they have of `overdraft`. It waits for no limit.
    ///
    /// The decision is refused where a limit had not one whole unit left before; it is charged all the
    /// same. But where one is closed to whoever asks (`block`), nothing is counted meanwhile, of this
    /// either: the decision tells so ([`blocked_for`](Decision::blocked_for)). Limits that only watch are charged as ever, if all would have let it pass.
    pub async fn report(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Report).await
    }

    async fn decide(
        &self,
        request: &Request<'_>,
        purpose: AskPurpose,
    ) -> Result<Decision, CheckError> {
        match self.attempt(&self.rules()?, request, purpose)? {
            Attempt::Done(decision) => Ok(decision),
            Attempt::Pending(pending) => pending.decision().await,
        }
    }

    /// Answers a question by a store that does so without waiting; `read` has the decision where it is
    /// made.
    #[inline]
    pub(crate) fn answer_at_once<T>(
        &self,
        question: &PreparedRequest<'_>,
        read: impl FnOnce(Decision) -> T,
    ) -> Option<T> {
        // Among those who wait, charges are made in the order of their instants.
        let _in_order = question.is_in_line.then(|| self.giving().credits.hold());
        if question.is_apart() {
            return each::decide_at_once(self, question).map(read);
        }
        let reply = self.store().decide_at_once(&question.asks);
        Some(read(question.answer(reply.as_ref()?)))
    }

    /// Answers a question by any store, and waits for limits that let it.
    pub(crate) async fn resolve(
        &self,
        question: &PreparedRequest<'_>,
    ) -> Result<Decision, CheckError> {
        if question.may_wait {
            return waiting::decide(self, question).await;
        }
        if !self.waits()
            && let Some(decision) = self.answer_at_once(question, |decision| decision)
        {
            return Ok(decision);
        }
        if question.is_apart() {
            return each::decide(self, question).await;
        }
        self.ask(question).await
    }

    /// Asks the store, as somebody who does not wait for limits.
    pub(crate) async fn ask(&self, question: &PreparedRequest<'_>) -> Result<Decision, CheckError> {
        let answers = self.ask_store(question.terms(), &question.asks).await?;
        Ok(question.decide_refundable(&answers))
    }

    /// Whether `request` can be decided as it is: the policy that it names is there, limits that it
    /// brings can be, and the limiter is not closed. Asks no store.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        let rules = self.rules()?;
        let (_, policy) = rules.find(request)?;
        RequestLimits::of(policy, request.descriptors).map(drop)
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// Decides a request at once, for callers that are not asynchronous. The same as
    /// [`check`](Self::check), which with a store in this process does not wait for it either; but
    /// this does not wait for limits, whatever their `on_refusal` says: what does not fit now is
    /// refused. On a token bucket it cannot get before those who wait; on windows it may.
    #[expect(clippy::missing_panics_doc, reason = "this store never waits")]
    pub fn check_now(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let mut decided = None;
        // Written to where it stays: moved through the attempt, it would be copied twice more.
        let keep = |decision| decided = Some(decision);
        let attempt = self.attempt_with(&self.rules()?, request, AskPurpose::Pass, keep)?;
        if let Attempt::Pending(pending) = attempt {
            decided = pending.decision_now();
        }
        Ok(decided.expect("a store in this process decides at once"))
    }
}
