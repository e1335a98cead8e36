//! A request that waits for its turn.

use super::WaitQueue;
use super::held_turn::HeldTurn;
use super::line::{LastRefusal, QueuedRequest};
use super::place_request::{TurnCharges, TurnReply, ask};
use super::places::WaitQuestion;
use crate::backend::Backend;
use crate::decision::{Answers, Decision};
use crate::error::CheckError;
use crate::request::PreparedRequest;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{LimitMode, Outcome, Reply, Store, Timestamp, Wait};
use tidegate_policy::{Limit, WaitRules};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Decides a request that matches limits with `on_refusal: wait`. Needs a runtime with timers.
pub(crate) async fn decide<S: Store>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    question: &PreparedRequest<'_>,
) -> Result<Decision, CheckError> {
    let turn = WaitingTurn {
        backend,
        queue,
        question,
        windows: windows(question),
        began: Instant::now(),
        number: queue.lines.arrive(),
        standing: None,
    };
    turn.take().await
}

struct WaitingTurn<'a, 'q, S> {
    backend: &'a Backend<S>,
    queue: &'a WaitQueue,
    question: &'a PreparedRequest<'q>,
    windows: SmallVec<[WaitWindow<'a>; 2]>,
    began: Instant,
    number: u64,
    standing: Option<QueuedRequest<'a>>,
}

/// A bucket that is not a token bucket, of a limit that lets requests wait.
#[derive(Clone, Copy)]
struct WaitWindow<'a> {
    bucket: &'a [u8],
    /// The index among the matched limits.
    nth: usize,
    waiting: WaitRules,
    /// True if requests in flight are waited for: a release may let it pass at any instant.
    releases: bool,
}

impl<'a, S: Store> WaitingTurn<'a, '_, S> {
    async fn take(mut self) -> Result<Decision, CheckError> {
        loop {
            if let Some((window, told)) = self.line_ahead() {
                if !self.stand(window, told.clone()) {
                    return Ok(self.refuse_in_line(window, told));
                }
                if let Some(told) = self.wait_in_line(window).await {
                    return Ok(self.refuse_in_line(window, told));
                }
                continue;
            }
            let answers = match ask(self.backend, self.queue, self.question).await? {
                TurnReply::Placed(places, reply, charges) => {
                    return Ok(self.pass(places, reply, charges).await);
                }
                TurnReply::Decided(answers) => answers,
            };
            let Some((window, wait)) = self.refused_by(&answers) else {
                return Ok(self.question.decide(&answers));
            };
            let (now, deadline) = (Instant::now(), self.began + window.waiting.max_wait);
            let until = now + wait;
            let refusal = self.refusal_of(window, &answers);
            let has_stood = self.stands_before(window);
            let is_over = if window.releases {
                now >= deadline
            } else {
                until > deadline
            };
            if is_over || !self.stand(window, refusal) {
                return Ok(self.question.decide(&answers));
            }
            if !window.releases {
                sleep_until(until).await;
            } else if has_stood {
                // A newcomer asks again at once: permits may have been released before it stood in the line, and
                // then no bell rang.
                self.wait_for_release(until.min(deadline)).await;
            }
        }
    }

    fn stands_before(&self, window: WaitWindow<'_>) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|standing| standing.is_before(window.bucket))
    }

    /// Waits as the first of its line, at most until an instant.
    async fn wait_for_release(&self, until: Instant) {
        if let Some(standing) = &self.standing {
            timeout_at(until, standing.rung()).await.ok();
        }
    }

    /// Returns the first window whose line contains an earlier request.
    fn line_ahead(&self) -> Option<(WaitWindow<'a>, LastRefusal)> {
        let mut windows = self.windows.iter();
        windows.find_map(|window| {
            let refusal = self.queue.lines.before(window.bucket, self.number)?;
            Some((*window, refusal))
        })
    }

    /// Joins the line of `window`, and leaves any other. Returns false if there is no room.
    fn stand(&mut self, window: WaitWindow<'a>, told: LastRefusal) -> bool {
        if let Some(standing) = &self.standing
            && standing.is_before(window.bucket)
        {
            standing.tell(told);
            return true;
        }
        let room = self.question.room(window.nth);
        let permit = room.and_then(|room| room.enter(window.waiting.max_waiting));
        let Some(permit) = permit else {
            return false;
        };
        let lines = &self.queue.lines;
        self.standing = Some(lines.stand(window.bucket, self.number, told, permit));
        true
    }

    /// Waits to be the first of its line. Returns the last refusal of the line if `max_wait` ends before.
    async fn wait_in_line(&self, window: WaitWindow<'a>) -> Option<LastRefusal> {
        let standing = self.standing.as_ref()?;
        // The earlier request may have left before this one joined; then no notification comes.
        self.queue.lines.before(window.bucket, self.number)?;
        let deadline = self.began + window.waiting.max_wait;
        match timeout_at(deadline, standing.rung()).await {
            Ok(()) => None,
            Err(_) => standing.last_refusal(),
        }
    }

    /// Waits in its place, if its turn is not now.
    async fn pass(mut self, places: WaitQuestion, reply: Reply, charges: TurnCharges) -> Decision {
        let TurnCharges { charges, watch } = charges;
        let question = self.question;
        let has_stood = self.standing.take().is_some();
        let mut plain = places.plain(question, &reply);
        let Some(watch) = watch else {
            let decision = question.conclude(&plain, charges);
            let waited = has_stood.then(|| self.began.elapsed());
            return decision.after(waited.unwrap_or_default());
        };
        let wait_us = places.waits_us(question, &reply).into_iter().max();
        let wait = Duration::from_micros(wait_us.unwrap_or(0));
        let too_long = has_stood && self.began.elapsed() + wait > self.longest();
        let refusals = too_long.then(|| places.refusals(question, &reply));
        let permits = places.into_permits();
        let reserved = HeldTurn::new(
            (self.backend, self.queue),
            Arc::clone(&charges),
            permits,
            watch,
        );
        if let Some(outcomes) = refusals {
            drop(reserved);
            return self.refuse(plain.at, outcomes);
        }
        let heard = Instant::now();
        let sooner_us = reserved.pass().await;
        // The reported values must be correct at the time of the response.
        let waited_us = u64::try_from(heard.elapsed().as_micros()).unwrap_or(u64::MAX);
        plain.at = plain.at.plus(waited_us);
        for (nth, outcome) in plain.outcomes.iter_mut().enumerate() {
            let sooner = sooner_us.iter().find(|(ask, _)| *ask == nth);
            let sooner_us = sooner.map_or(0, |(_, sooner_us)| *sooner_us);
            outcome.reset_us = outcome.reset_us.saturating_sub(waited_us);
            outcome.reset_us = outcome.reset_us.saturating_sub(sooner_us);
        }
        let decision = question.conclude(&plain, charges);
        decision.after(self.began.elapsed())
    }

    /// Returns the window to wait for, and the wait, if nothing else refuses the request.
    fn refused_by(&self, answers: &Answers) -> Option<(WaitWindow<'a>, Duration)> {
        if answers.is_fallback() {
            return None;
        }
        let mut longest: Option<(WaitWindow<'a>, Wait)> = None;
        for (ask, outcome) in self.question.asks.iter().zip(answers.outcomes().flatten()) {
            if outcome.is_allowed() || ask.mode == LimitMode::Shadow {
                continue;
            }
            let mut windows = self.windows.iter();
            let window = windows.find(|window| window.nth == usize::from(ask.limit))?;
            if longest.is_none_or(|(_, wait)| wait < outcome.wait) {
                longest = Some((*window, outcome.wait));
            }
        }
        let (window, wait) = longest?;
        // The instant of a release is unknown.
        let wait = if wait.is_release() {
            window.waiting.max_wait
        } else {
            wait.as_duration()?
        };
        Some((window, wait))
    }

    /// Returns the outcomes of the bands of the limit of `window`.
    fn refusal_of(&self, window: WaitWindow<'_>, answers: &Answers) -> LastRefusal {
        let asks = self.question.asks.iter().zip(answers.outcomes());
        let of_limit = asks.filter(|(ask, _)| usize::from(ask.limit) == window.nth);
        LastRefusal {
            at: answers.at,
            heard: Instant::now(),
            outcomes: of_limit.filter_map(|(_, outcome)| outcome).collect(),
        }
    }

    /// Refuses by the last refusal of the line before `window`, without calling the store: a call out of turn
    /// might pass out of turn.
    fn refuse_in_line(&self, window: WaitWindow<'_>, mut told: LastRefusal) -> Decision {
        told.age(Instant::now());
        let mut known = told.outcomes.iter().peekable();
        let asks = self.question.asks.iter();
        let of_line = asks.map(|ask| {
            let is_told = usize::from(ask.limit) == window.nth;
            known.next_if(|_| is_told).copied()
        });
        self.refuse(told.at, of_line)
    }

    fn refuse(
        &self,
        at: Timestamp,
        outcomes: impl IntoIterator<Item = Option<Outcome>>,
    ) -> Decision {
        self.question.decide(&Answers::refused(at, outcomes))
    }

    /// Returns the longest time that any limit lets the request wait.
    fn longest(&self) -> Duration {
        let limits = self.question.limits();
        let waits = limits.filter_map(|(_, limit)| limit.waiting);
        waits.map(|it| it.max_wait).max().unwrap_or_default()
    }
}

fn windows<'a>(question: &'a PreparedRequest<'_>) -> SmallVec<[WaitWindow<'a>; 2]> {
    let limits = question.limits();
    let window = |(nth, limit): (usize, &Limit)| {
        let waiting = limit.waiting?;
        let is_window = !limit.algorithm.has_places() && question.takes(nth);
        is_window.then_some(WaitWindow {
            bucket: question.bucket(nth),
            nth,
            waiting,
            releases: limit.algorithm.is_concurrent(),
        })
    };
    limits.filter_map(window).collect()
}
