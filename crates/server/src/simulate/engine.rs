//! Decides past requests in virtual time.

use super::event::Event;
use super::tally::SimulationTally;
use std::sync::Arc;
use tidegate::{CheckError, Client, Config, Decision};
use tidegate_config::Environment;
use tidegate_control::failure::Failure;
use tidegate_control::sources::once;
use tidegate_frontends::past::PastLimiter;
use tidegate_policy::store::StoreSettings;

/// A limiter whose clock is set by the events that it decides, and the tally of its decisions.
#[derive(Debug)]
pub struct Engine {
    limiter: PastLimiter,
    client: Client,
    /// The policy for events that name none. Default: the first.
    policy: Option<String>,
    tally: SimulationTally,
}

impl Engine {
    /// Creates an engine for the configuration `text`; messages refer to it as `name`.
    ///
    /// Buckets are in memory, regardless of the store that the configuration names: a simulation must not
    /// affect live buckets, and every store decides alike.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if the configuration is invalid, a plan cannot be loaded, or `policy` does not exist.
    pub fn new(
        text: &str,
        name: &str,
        environment: &dyn Environment,
        policy: Option<String>,
    ) -> Result<Self, Failure> {
        let parse = || Config::parse(text, name, environment).map_err(Failure::input);
        Self::of(&parse, name, policy)
    }

    /// Creates an engine for the configuration that `parse` returns. It is called once for each copy that
    /// is needed.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn of(
        parse: &dyn Fn() -> Result<Config, Failure>,
        name: &str,
        policy: Option<String>,
    ) -> Result<Self, Failure> {
        let mut config = parse()?;
        // In memory, and without the file in which a server keeps its budgets.
        config.store.target = StoreSettings::default().target;
        config.store.snapshot = None;
        if let Some(policy) = &policy
            && config.policy(Some(policy)).is_none()
        {
            return Err(Failure::input(format!(
                "unknown policy `{policy}` in {name}"
            )));
        }
        let client = config.client.clone();
        let sources = config.plans.clone();
        let limits = config.written().flat_map(|policy| &policy.limits);
        let tables = once::load(&sources, limits, |_, _| true)?;
        let limiter = PastLimiter::new(config).map_err(Failure::input)?;
        // The limiter does not expose its policies, and the tally needs them by name.
        let mut tally = SimulationTally::new(parse()?);
        for (source, table) in sources.iter().zip(tables.iter().flatten()) {
            let used = limiter.use_plans(&source.name, Arc::clone(table));
            used.map_err(Failure::input)?;
        }
        tally.use_plans(tables);
        Ok(Self {
            limiter,
            client,
            policy,
            tally,
        })
    }

    /// Decides an event, and passes the decision to `then`. An event that is earlier than its predecessor
    /// gets that one's time.
    ///
    /// # Errors
    ///
    /// Those of [`PastLimiter::decide`]: for example, the event names an unknown policy. It is not in the tally then.
    #[inline]
    pub fn decide<F>(&mut self, event: &Event<'_>, then: F) -> Result<(), CheckError>
    where
        F: FnOnce(&Decision),
    {
        let now = || event.at.as_micros() / 1_000_000;
        let learnt = event.question.learn(&self.client, &now);
        let pairs = event.question.pairs_with(learnt.as_ref());
        let descriptors = event.question.descriptors(&pairs);
        let mut request = event.question.request(&pairs).descriptors(&descriptors);
        if request.policy.is_none() {
            request.policy = self.policy.as_deref();
        }
        if let (Some(seen), Some(forwarded)) = (request.ip, &event.forwarded) {
            request.ip = Some(self.client.address_behind(seen, forwarded));
        }
        let decision = self.limiter.decide(event.at, &request)?;
        self.tally.add(&request, &decision, event.at);
        then(&decision);
        Ok(())
    }

    /// Returns the tally so far.
    pub fn tally(&self) -> &SimulationTally {
        &self.tally
    }
}
