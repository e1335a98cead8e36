//! Charging an estimate, and the id of the reservation.

use super::parts::{self, ReservedBands};
use super::payload::{ChargeHome, Payload};
use super::reservation::Reservation;
use super::seal::Seal;
use crate::answers::Answers;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::purpose::AskPurpose;
use crate::question::{Buffers, NextStep, PreparedRequest};
use crate::rules::Rules;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Ask, Op, Store};
use tidegate_policy::{Policy, Request};

impl<S: Store> Limiter<S> {
    /// Reserves the expected cost of `request`, for `ttl` or, without one, for the policy's default. Settle
    /// it with [`commit`](Self::commit) or [`refund`](Self::refund); a reservation that is never settled
    /// stays charged.
    ///
    /// The policy must accept reservations (`reserve` in the configuration, or
    /// [`LimiterBuilder::reserve`](crate::LimiterBuilder::reserve)); a `ttl` above its maximum is reduced to
    /// it. Every matched limit is charged the estimate if all of them have room, including those with
    /// `charge: always`. An estimate of 0 tests if anything is left. No request waits for a limit.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), and [`CheckError::CannotReserve`] if the policy accepts no
    /// reservations, `ttl` is zero, or an id cannot hold all charges.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{Limiter, Request, SettleState};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - name: llm
    ///     reserve: 60s
    ///     limits: [{ name: tokens, key: user, rate: 1000/h }]
    /// ")?;
    /// let ann = Request::new().user("ann");
    ///
    /// // The answer may have up to 800 tokens.
    /// let reservation = limiter.reserve(&ann.cost(800), Duration::from_secs(30)).await?;
    /// let id = reservation.id().expect("there is room");
    /// assert!(!limiter.check(&ann.cost(300)).await?.is_allowed());
    ///
    /// // It had 150.
    /// let settled = limiter.commit(id, 150).await?;
    /// assert_eq!(settled.state(), SettleState::Settled);
    /// assert!(limiter.check(&ann.cost(300)).await?.is_allowed());
    ///
    /// // Whoever is not sure whether that was heard says it again.
    /// assert_eq!(limiter.commit(id, 150).await?.state(), SettleState::Already);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn reserve(
        &self,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Reservation, CheckError> {
        self.reserve_by(&self.rules()?, request, ttl).await
    }

    /// Like [`reserve`](Self::reserve), by `rules`, under the conditions of [`attempt`](Self::attempt).
    ///
    /// # Errors
    ///
    /// Those of [`reserve`](Self::reserve), except [`CheckError::Closed`].
    pub async fn reserve_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Reservation, CheckError> {
        let ttl = ttl.into();
        match self.reserve_at_once(rules, request, ttl) {
            Some(reserved) => reserved,
            None => Box::pin(self.reserve_waiting(rules, request, ttl)).await,
        }
    }

    /// Like [`reserve_by`](Self::reserve_by), if the store decides immediately; `None` means that nothing was
    /// done.
    fn reserve_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Option<Result<Reservation, CheckError>> {
        if self.waits() {
            return None;
        }
        let seal = self.reserving().keys.at_once(rules, false)?;
        Some(self.reserve_here(rules, request, ttl, self.closer(seal)))
    }

    /// Checks if `request` can be reserved: its policy exists and accepts reservations, the limits it carries
    /// are valid, and an id can hold all its charges. Calls no store.
    ///
    /// # Errors
    ///
    /// The error that [`reserve_by`](Self::reserve_by) would return for one of these reasons.
    pub fn accepts_reserving(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<(), CheckError> {
        let terms = ReserveTerms::of(rules, request, ttl.into())?;
        let mut buffers = Buffers::default();
        match PreparedRequest::prepare(rules, request, AskPurpose::Reserve, &mut buffers)? {
            NextStep::Ask(question) => terms.estimated(question).map(drop),
            NextStep::Decided(_) => Ok(()),
        }
    }

    fn reserve_here(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
        by: Closer,
    ) -> Result<Reservation, CheckError> {
        let terms = ReserveTerms::of(rules, request, ttl)?;
        let mut buffers = Buffers::default();
        let question =
            match PreparedRequest::prepare(rules, request, AskPurpose::Reserve, &mut buffers)? {
                NextStep::Ask(question) => terms.estimated(question)?,
                NextStep::Decided(decision) => {
                    return terms.conclude(decision, &[], &ReservedBands::new(), by);
                }
            };
        let reply = self.store().decide_at_once(&question.asks);
        let reply = reply.expect("a store that does not wait decides at once");
        terms.conclude_by(&question, &Answers::of(&question.asks, &reply), by)
    }

    async fn reserve_waiting(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Reservation, CheckError> {
        let terms = ReserveTerms::of(rules, request, ttl)?;
        // Before anything is charged: without a seal the charge could not be settled.
        let by = self.closer(self.reserving().keys.closing(rules, self.store()).await);
        let mut buffers = Buffers::default();
        let prepared = PreparedRequest::prepare(rules, request, AskPurpose::Reserve, &mut buffers)?;
        prepared.count(rules, request);
        let question = match prepared {
            NextStep::Ask(question) => terms.estimated(question)?,
            NextStep::Decided(decision) => {
                return terms.conclude(decision, &[], &ReservedBands::new(), by);
            }
        };
        let answers = self.ask_store(question.terms(), &question.asks).await?;
        terms.conclude_by(&question, &answers, by)
    }

    fn closer(&self, seal: Seal) -> Closer {
        Closer {
            seal,
            instance: self.reserving().instance,
        }
    }
}

/// The seal and the limiter that close an id.
#[derive(Clone, Copy)]
struct Closer {
    seal: Seal,
    /// The id of the limiter.
    instance: u64,
}

/// The terms of a reservation.
struct ReserveTerms<'r> {
    policy: &'r Policy,
    estimate: u64,
    ttl: Duration,
    ttl_us: u64,
}

impl<'r> ReserveTerms<'r> {
    fn of(
        rules: &'r Rules,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Self, CheckError> {
        let (_, policy) = rules.find(request)?;
        let Some(reserving) = policy.reserving() else {
            let why =
                "it takes no reservations; give it `reserve: 60s`, or as long as they may live";
            return Err(CheckError::cannot_reserve(policy, why));
        };
        let ttl = ttl.unwrap_or(reserving.default_ttl).min(reserving.max_ttl);
        let ttl_us = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
        if ttl_us == 0 {
            let why = "a reservation lives for some time; ask for at least a microsecond";
            return Err(CheckError::cannot_reserve(policy, why));
        }
        Ok(Self {
            policy,
            estimate: request.cost,
            ttl,
            ttl_us,
        })
    }

    /// Turns a prepared request into one for an estimate, which tests at least if anything is left.
    fn estimated<'q>(
        &self,
        mut question: PreparedRequest<'q>,
    ) -> Result<PreparedRequest<'q>, CheckError> {
        let asks = question.asks.iter();
        let given_back = asks.filter(|ask| matches!(ask.op, Op::GiveBack(_)));
        let given_back: SmallVec<[u16; 4]> = given_back.map(|ask| ask.limit).collect();
        for ask in &mut question.asks {
            ask.op = match ask.op {
                Op::Take(cost @ 1..) => Op::Take(cost),
                Op::GiveBack(_) => Op::Look,
                // A limit that gets a refund is neither tested nor blocked.
                Op::Look if given_back.contains(&ask.limit) => Op::Look,
                // A test if anything is left also reports a block.
                _ if ask.quota.is_block() => Op::Block,
                Op::Look
                | Op::Take(_)
                | Op::Force(_)
                | Op::Debit(_)
                | Op::Test(_)
                | Op::Return { .. }
                | Op::Block => Op::Test(1),
            };
        }
        let bands = question.asks.iter().filter(|ask| ask.op != Op::Block);
        let names = bands.map(|ask| ask.bucket);
        if !Payload::fits(&self.policy.name, names) {
            let why = "this request meets more limits than a reservation's id can carry";
            return Err(CheckError::cannot_reserve(self.policy, why));
        }
        Ok(question)
    }

    /// Returns the reservation once it is decided. Its charges are refunded only through its id: with a
    /// second way, they could be refunded twice.
    fn conclude_by(
        &self,
        question: &PreparedRequest<'_>,
        answers: &Answers,
        by: Closer,
    ) -> Result<Reservation, CheckError> {
        let parts = parts::of(&question.asks, answers);
        self.conclude(question.decide(answers), &question.asks, &parts, by)
    }

    /// Like [`conclude_by`](Self::conclude_by), once `parts` of `asks` are charged.
    fn conclude(
        &self,
        decision: Decision,
        asks: &[Ask<'_>],
        parts: &ReservedBands,
        by: Closer,
    ) -> Result<Reservation, CheckError> {
        if !decision.is_allowed() {
            return Ok(Reservation::refused(decision));
        }
        let is_here = parts.iter().any(|part| part.home != ChargeHome::Store);
        let payload = Payload {
            policy: self.policy.name.as_str().into(),
            estimate: self.estimate,
            ttl_us: self.ttl_us,
            instance: if is_here { by.instance } else { 0 },
            buckets: parts::by_bucket(asks, parts),
        };
        match by.seal.close(&payload.write()) {
            Some(id) => Ok(Reservation::held(decision, id, self.ttl)),
            None => {
                let why = "what it has charged could not be written down";
                Err(CheckError::cannot_reserve(self.policy, why))
            }
        }
    }
}
