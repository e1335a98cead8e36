//! Rates that come from plans.

mod blocking;
mod calendars;
mod deciding;
mod keeping;
mod replacing;
mod skipping;
mod units;
mod warning;

use tidegate::plan::PlanDocument;
use tidegate::{Config, Decision, Limiter, ManualClock, MemoryStore, Request, Timestamp};

pub(crate) const EVENTS: &str = "
plans: [{ name: events, file: plans.yaml }]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        missing: refuse
        rate: { plan: events, subject: attr:project, default: 2/h }
        algorithm: fixed-window
";

pub(crate) const PLANS: &str = "
plans: { free: { amount: 3, period: 60 } }
groups: { acme: { plan: free, amount: 5 } }
subjects:
  one: { group: acme }
  two: { group: acme, period: 3600 }
  all: { unlimited: true }
  odd: { amount: 1 }
";

pub(crate) fn config(text: &str) -> Config {
    Config::from_yaml(text).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn document(text: &str) -> PlanDocument {
    tidegate::plans_from_text(text, false).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns a limiter with a paused clock, and the clock.
pub(crate) fn limiter(text: &str, plans: &str) -> (Limiter<MemoryStore<ManualClock>>, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let builder = Limiter::builder().config(config(text)).clock(clock.clone());
    let limiter = builder.build().unwrap_or_else(|error| panic!("{error}"));
    if !plans.is_empty() {
        limiter
            .replace_plans("events", document(plans))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    (limiter, clock)
}

/// Sends a request of a project.
pub(crate) fn ask(limiter: &Limiter<MemoryStore<ManualClock>>, project: &str) -> Decision {
    let attributes = [("project", project)];
    let request = Request::new().attributes(&attributes);
    limiter.check_now(&request).expect("a decision")
}

/// Returns the number of `times` requests that pass.
pub(crate) fn passes(
    limiter: &Limiter<MemoryStore<ManualClock>>,
    project: &str,
    times: usize,
) -> usize {
    (0..times)
        .filter(|_| ask(limiter, project).is_allowed())
        .count()
}
