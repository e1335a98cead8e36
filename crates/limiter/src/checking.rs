//! Deciding requests: at once where the store does, else across the network.

use crate::decision::{Brought, Decision};
use crate::each;
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::purpose::Purpose;
use crate::question::{Buffers, Prepared, Question};
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
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
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
        self.check_by(&self.rules()?, request).await
    }

    /// Decides a request by `rules`: for a door that has found out who asks by them, so that a reload
    /// in between cannot have it decided by others.
    ///
    /// They must be this limiter's, from [`rules`](Self::rules); those before a reload will do. By
    /// another's, requests would be counted in buckets of this store as the policies of that one say;
    /// a debug build panics.
    pub async fn check_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        // A policy that may make requests wait is not tried at once first: its limits would be matched
        // twice.
        if !rules.may_wait(request.policy)
            && let Some(decided) = self.check_at_once(rules, request)
        {
            return decided;
        }
        // Put aside: it is large, and would be part of every decision that does not wait.
        Box::pin(self.check_waiting(rules, request, Purpose::Pass)).await
    }

    /// Decides a request that is decided again and again, such as each message of a connection, as
    /// [`check_by`](Self::check_by) does: by the rules that it was made with, and in order with
    /// others that wait.
    pub async fn check_repeated(&self, repeated: &mut Repeated) -> Result<Decision, CheckError> {
        let Repeated {
            rules,
            kept,
            buffers,
        } = repeated;
        let pairs = kept.pairs();
        let request = kept.request(&pairs);
        let decided = self.check_with(rules, &request, Purpose::Pass, buffers);
        let decided = decided.await;
        buffers.let_go();
        decided
    }

    /// Decides a request by `rules`, as [`check_by`](Self::check_by) does and under the same
    /// condition, if that takes no waiting: neither for the store, nor for a limit that the request
    /// meets. `None` means that nothing was done; then `check_by` is what is left.
    #[inline]
    pub fn check_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Option<Result<Decision, CheckError>> {
        self.decide_here(rules, request, Purpose::Pass, true)
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
        self.test_by(&self.rules()?, request).await
    }

    /// The same by `rules`, under the condition of [`check_by`](Self::check_by).
    pub async fn test_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        match self.test_at_once(rules, request) {
            Some(tested) => tested,
            None => Box::pin(self.check_waiting(rules, request, Purpose::Test)).await,
        }
    }

    /// The same, if the store does that without waiting; `None` means that nothing was done.
    pub fn test_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Option<Result<Decision, CheckError>> {
        self.decide_here(rules, request, Purpose::Test, false)
    }

    /// Tells of a request what it has used already: all limits that it meets are charged with it,
    /// whether it fits or not, down to what they have of `overdraft`. It waits for no limit.
    ///
    /// The decision is refused where a limit had not one whole unit left before; it is charged all the
    /// same. But where one is closed to whoever asks (`block`), nothing is counted meanwhile, of this
    /// either: the decision tells so ([`blocked_for`](Decision::blocked_for)). Limits that only watch are charged as ever, if all would have let it pass.
    pub async fn report(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.report_by(&self.rules()?, request).await
    }

    /// The same by `rules`, under the condition of [`check_by`](Self::check_by).
    pub async fn report_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        match self.report_at_once(rules, request) {
            Some(reported) => reported,
            None => Box::pin(self.check_waiting(rules, request, Purpose::Report)).await,
        }
    }

    /// The same, if the store does that without waiting; `None` means that nothing was done.
    pub fn report_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Option<Result<Decision, CheckError>> {
        self.decide_here(rules, request, Purpose::Report, false)
    }

    /// Decides a request if the store does that without waiting; where it `may_wait` for a limit it
    /// meets, nothing is done.
    #[inline]
    fn decide_here(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        purpose: Purpose,
        may_wait: bool,
    ) -> Option<Result<Decision, CheckError>> {
        debug_assert!(
            self.is_owner(rules.owner),
            "these rules are another limiter's"
        );
        if self.waits() {
            return None;
        }
        let mut buffers = BUFFERS.take().unwrap_or_default();
        let decided = self.decide_with(rules, request, (purpose, may_wait), &mut buffers);
        BUFFERS.set(Some(buffers));
        decided
    }

    #[inline]
    fn decide_with(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        (purpose, may_wait): (Purpose, bool),
        buffers: &mut Buffers,
    ) -> Option<Result<Decision, CheckError>> {
        let mut prepared = Question::begin(rules, request, purpose, buffers);
        // Looked at where it is: it is large, and moving it would be a good part of a decision.
        if let Ok(Prepared::Ask(question)) = &mut prepared {
            if question.may_wait && may_wait {
                return None;
            }
            question.ask(request, purpose);
            return self.answer_at_once(question);
        }
        match prepared {
            Ok(Prepared::Decided(decision)) => Some(Ok(decision)),
            Ok(Prepared::Ask(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Answers a question by a store that does so without waiting.
    #[inline]
    fn answer_at_once(&self, question: &Question<'_>) -> Option<Result<Decision, CheckError>> {
        // Among those who wait, charges are made in the order of their instants.
        let _in_order = question.is_in_line.then(|| self.giving().credits.hold());
        if question.is_apart() {
            return each::decide_at_once(self, question).map(Ok);
        }
        let reply = self.store().decide_at_once(&question.asks);
        Some(Ok(question.answer(reply.as_ref()?)))
    }

    async fn check_waiting(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        purpose: Purpose,
    ) -> Result<Decision, CheckError> {
        let mut buffers = Buffers::default();
        self.check_with(rules, request, purpose, &mut buffers).await
    }

    async fn check_with(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        purpose: Purpose,
        buffers: &mut Buffers,
    ) -> Result<Decision, CheckError> {
        debug_assert!(
            self.is_owner(rules.owner),
            "these rules are another limiter's"
        );
        let prepared = Question::prepare(rules, request, purpose, buffers)?;
        if purpose == Purpose::Pass {
            prepared.count(rules, request);
        }
        match prepared {
            Prepared::Ask(question) if question.may_wait => waiting::decide(self, &question).await,
            Prepared::Ask(question) => {
                let at_once = if self.waits() {
                    None
                } else {
                    self.answer_at_once(&question)
                };
                match at_once {
                    Some(decided) => decided,
                    None if question.is_apart() => each::decide(self, &question).await,
                    None => self.ask(&question).await,
                }
            }
            Prepared::Decided(decision) => Ok(decision),
        }
    }

    /// Asks the store, as somebody who does not wait for limits.
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<Decision, CheckError> {
        let answers = self.ask_store(question.terms(), &question.asks).await?;
        Ok(question.decide_refundable(&answers))
    }

    /// Whether `request` can be decided as it is: the policy that it names is there, limits that it
    /// brings can be, and the limiter is not closed. Asks no store.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        let rules = self.rules()?;
        let (_, policy) = rules.find(request)?;
        Brought::of(policy, request.descriptors).map(drop)
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// Decides a request at once, for callers that are not asynchronous. The same as
    /// [`check`](Self::check), which with a store in this process does not wait for it either; but
    /// this does not wait for limits, whatever their `on_refusal` says: what does not fit now is
    /// refused. On a token bucket it cannot get before those who wait; on windows it may.
    #[expect(clippy::missing_panics_doc, reason = "this store never waits")]
    pub fn check_now(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let decided = self.decide_here(&self.rules()?, request, Purpose::Pass, false);
        decided.expect("a store in this process decides at once")
    }
}
