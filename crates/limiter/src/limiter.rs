//! The limiter: policies and a store.

use crate::build::Builder;
use crate::decision::Decision;
use crate::error::{BuildError, CheckError};
use crate::question::{Prepared, Question};
use crate::rules::Rules;
use arc_swap::ArcSwap;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_core::{Clock, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::matching::Scratch;
use tidegate_policy::{Config, Request};

/// Decides whether requests may pass.
///
/// Clones are cheap and share everything. Dropping the last one lets go of the store.
///
/// # Example
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("100/min"))
///     .build()?;
/// let decision = limiter.check_now(&Request::new().user("ann").cost(40))?;
/// assert_eq!(decision.binding().map(|band| band.remaining()), Some(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Limiter<S = MemoryStore> {
    shared: Arc<Shared<S>>,
}

#[derive(Debug)]
struct Shared<S> {
    /// Replaced whole by a reload; a decision keeps the version that it began with.
    rules: ArcSwap<Rules>,
    store: S,
    closed: AtomicBool,
}

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Limiter {
    /// Begins a limiter in code.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A limiter from a configuration in YAML or JSON.
    pub fn from_yaml(text: &str) -> Result<Self, BuildError> {
        Builder::new().yaml(text)?.build()
    }

    /// A limiter from a configuration file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BuildError> {
        Builder::new().file(path)?.build()
    }
}

impl<S: Store> Limiter<S> {
    pub(crate) fn new(rules: Rules, store: S) -> Self {
        Self {
            shared: Arc::new(Shared {
                rules: ArcSwap::from_pointee(rules),
                store,
                closed: AtomicBool::new(false),
            }),
        }
    }

    /// Decides a request.
    pub async fn check(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let rules = self.rules()?;
        let mut scratch = Scratch::default();
        let question = match Question::prepare(&rules, request, &mut scratch)? {
            Prepared::Ask(question) => question,
            Prepared::Decided(decision) => return Ok(decision),
        };
        let reply = self.shared.store.decide(&question.asks).await;
        Ok(question.answer(&reply.map_err(CheckError::Store)?))
    }

    /// Replaces all policies by those of `config`, at once. Decisions under way keep the version
    /// that they began with. Buckets whose limit and band keep their names keep their state.
    ///
    /// Settings of the store and of listeners are not looked at.
    pub fn reload(&self, config: Config) {
        self.shared.rules.store(Arc::new(Rules::from(config)));
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.shared.store
    }

    /// Lets no further request be decided, here or through any clone.
    ///
    /// A store in this process has nothing to write back; dropping the last clone frees it.
    pub fn close(&self) {
        self.shared.closed.store(true, Relaxed);
    }

    fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        if self.shared.closed.load(Relaxed) {
            return Err(CheckError::Closed);
        }
        Ok(self.shared.rules.load_full())
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// Decides a request at once, for callers that are not asynchronous. The same as
    /// [`check`](Self::check), which with a store in this process never waits either.
    pub fn check_now(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        thread_local! {
            // Buffers that stay warm, so that a decision allocates nothing.
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        let rules = self.rules()?;
        SCRATCH.with_borrow_mut(|scratch| {
            Ok(match Question::prepare(&rules, request, scratch)? {
                Prepared::Ask(question) => {
                    let reply = self.shared.store.decide_now(&question.asks);
                    question.answer(&reply)
                }
                Prepared::Decided(decision) => decision,
            })
        })
    }
}
