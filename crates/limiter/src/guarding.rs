//! Evaluating guards: before any limit, or alone.

use crate::decision::Decision;
use crate::error::CheckError;
use crate::known::AtHand;
use crate::limiter::Limiter;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::guard::{GuardScratch, GuardVerdict};
use tidegate_policy::{DigestedText, Request};

/// Buffers for evaluating guards, kept from one request to the next.
#[derive(Debug, Default)]
pub(crate) struct GuardBuffers {
    scratch: GuardScratch,
    pub(crate) lists: AtHand,
}

impl Rules {
    /// Evaluates the guards for a request, with the current lists.
    // Out of line: most configurations have no guards, and should pay only a branch.
    #[inline(never)]
    pub(crate) fn ask_guards(
        &self,
        request: &Request<'_>,
        marked: Option<DigestedText<'_>>,
        buffers: &mut GuardBuffers,
    ) -> GuardVerdict {
        let GuardBuffers { scratch, lists } = buffers;
        self.known.follow(lists);
        let list = |number| lists.list(number);
        self.guards.ask(request, list, scratch, marked)
    }

    /// Decides a request by the guards alone.
    pub(crate) fn guard(
        self: &Arc<Self>,
        request: &Request<'_>,
        buffers: &mut GuardBuffers,
    ) -> Result<Decision, CheckError> {
        let (number, _) = self.find(request)?;
        let verdict = self.ask_guards(request, None, buffers);
        Ok(Decision::guarded(self, number, request, verdict))
    }
}

impl<S: Store> Limiter<S> {
    /// Evaluates the guards alone: no limit applies, and nothing is charged. The decision is a refusal if a
    /// guard refuses, and allowed otherwise; see its [`reason`](Decision::reason) and
    /// [`guard`](Decision::guard). Never waits, because lists are in memory.
    ///
    /// # Errors
    ///
    /// If the policy is unknown or the limiter is closed.
    ///
    /// # Example
    ///
    /// Checks if a project is blocked, or an address is on a blocklist:
    ///
    /// ```
    /// use tidegate::{Limiter, AnswerReason, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards:
    ///   - { name: blocked, refuse: attr:project, list: [65fa01] }
    ///   - { name: blacklist, refuse: ip, list: [192.0.2.0/24] }
    /// policies: [{ name: events, limits: [{ name: all, rate: 10/s }] }]
    /// ")?;
    ///
    /// // IsBlocked(project)
    /// let project = [("project", "65fa01")];
    /// let blocked = limiter.check_guards(&Request::new().attributes(&project))?;
    /// assert_eq!(blocked.reason(), AnswerReason::Blocked);
    ///
    /// // CheckBlacklist(ip)
    /// let listed = limiter.check_guards(&Request::new().ip("192.0.2.7".parse()?))?;
    /// assert_eq!(listed.guard().map(|guard| guard.name.as_str()), Some("blacklist"));
    /// assert!(limiter.check_guards(&Request::new().ip("198.51.100.1".parse()?))?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_guards(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.rules()?.guard(request, &mut GuardBuffers::default())
    }
}
