//! Watches for conditions that no request reports: an unreachable store, stale lists and plans, rejected
//! configurations.

use super::{Alert, AlertSender};
use crate::source_health::SourceHealthList;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Limiter, Store};
use tidegate_config::alerts::AlertKind;
use tokio::time::sleep;

/// The interval between checks.
const EVERY: Duration = Duration::from_secs(1);

/// A failure shorter than this may be temporary.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks for changes at an interval, and sends an alert for each. Never returns.
pub async fn watch<S: Store>(
    limiter: Limiter<S>,
    sources: Arc<SourceHealthList>,
    bell: AlertSender,
) {
    let mut seen = WatchedState::default();
    loop {
        sleep(EVERY).await;
        let store = match limiter.store_health() {
            // Without requests nothing else probes the store, and it would stay marked as unreachable.
            Some(health) if !health.is_up => limiter.probe_store().await,
            health => health,
        };
        let store = store.map(|health| health.is_up);
        for (alert, over) in seen.look(store, troubles(&limiter, &sources)) {
            // So that it is sent again if it recurs, even soon.
            bell.forget(alert.kind, &over);
            bell.ring(alert);
        }
    }
}

/// A problem that lasts until it is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastingProblem {
    kind: AlertKind,
    /// The affected list, plan or source.
    name: String,
    why: String,
}

impl LastingProblem {
    fn new(kind: AlertKind, name: String, why: String) -> Self {
        Self { kind, name, why }
    }

    /// Returns true if both are the same problem, regardless of the reason.
    fn is(&self, other: &Self) -> bool {
        (self.kind, &self.name) == (other.kind, &other.name)
    }

    fn begins(&self) -> Alert {
        let Self { name, why, .. } = self;
        let message = match self.kind {
            AlertKind::Config => {
                format!(
                    "The configuration was rejected; the previous one stays in force. {name}: {why}."
                )
            }
            _ => format!("Cannot load {name}; the last good version stays in force: {why}."),
        };
        Alert::new(self.kind, name, message)
    }

    fn ends(&self) -> Alert {
        let name = &self.name;
        let message = match self.kind {
            AlertKind::Config => format!("{name}: the configuration is valid again."),
            _ => format!("{name}: can be loaded again."),
        };
        Alert::new(self.kind, &again(name), message)
    }
}

/// Returns the lists, plans and sources that could not be loaded for a while, and rejected
/// configurations.
fn troubles<S: Store>(limiter: &Limiter<S>, sources: &SourceHealthList) -> Vec<LastingProblem> {
    let is_long = |failing_for: Option<Duration>| failing_for.is_some_and(|it| it >= PATIENCE);
    let stale = |name, why| LastingProblem::new(AlertKind::Stale, name, why);
    let lists = limiter.lists().into_iter();
    let lists = lists.filter(|list| is_long(list.failing_for)).map(|list| {
        let name = format!("the list of guard `{}`", list.guard);
        stale(name, list.error.unwrap_or_default())
    });
    let plans = limiter.plans().into_iter();
    let plans = plans
        .filter(|plans| is_long(plans.failing_for))
        .map(|plans| {
            let name = format!("plans `{}`", plans.name);
            stale(name, plans.error.unwrap_or_default())
        });
    let sources = sources.sources().into_iter().flat_map(|source| {
        let name = format!("policy of `{}`", source.name());
        let failing = source.failing().filter(|(since, _)| *since >= PATIENCE);
        let failing = failing.map(|(_, why)| stale(name.clone(), why));
        // A rejected configuration does not become valid without a change: there is nothing to wait for.
        let refused = source.refusal();
        let refused = refused.map(|why| LastingProblem::new(AlertKind::Config, name, why));
        [failing, refused].into_iter().flatten()
    });
    lists.chain(plans).chain(sources).collect()
}

/// Returns the subject of an alert that something can be loaded again.
fn again(name: &str) -> String {
    format!("{name}, again")
}

/// The state at the last check.
#[derive(Debug, Default)]
struct WatchedState {
    store_away: bool,
    troubles: Vec<LastingProblem>,
}

impl WatchedState {
    /// Returns an alert for each change since the last check, each with the subject of the alert that it
    /// ends. `store_up` is `None` for a store that is always reachable.
    fn look(
        &mut self,
        store_up: Option<bool>,
        troubles: Vec<LastingProblem>,
    ) -> Vec<(Alert, String)> {
        let mut alerts = Vec::new();
        let away = store_up == Some(false);
        if away != self.store_away {
            self.store_away = away;
            // Different subjects, so that neither counts as a repetition of the other.
            let (subject, over, message) = if away {
                let message = "The store is unavailable; `on_failure` applies.";
                ("away", "back", message)
            } else {
                ("back", "away", "The store is available again.")
            };
            let alert = Alert::new(AlertKind::Store, subject, message);
            alerts.push((alert, over.to_owned()));
        }
        let is_among =
            |trouble: &LastingProblem, all: &[LastingProblem]| all.iter().any(|it| it.is(trouble));
        for trouble in troubles.iter().filter(|it| !is_among(it, &self.troubles)) {
            alerts.push((trouble.begins(), again(&trouble.name)));
        }
        for trouble in self.troubles.iter().filter(|it| !is_among(it, &troubles)) {
            alerts.push((trouble.ends(), trouble.name.clone()));
        }
        self.troubles = troubles;
        alerts
    }
}

#[cfg(test)]
mod tests {
    use super::{LastingProblem, WatchedState};
    use tidegate_config::alerts::AlertKind;

    /// Returns the subjects of the alerts.
    fn look(
        seen: &mut WatchedState,
        up: Option<bool>,
        troubles: &[(AlertKind, &str, &str)],
    ) -> Vec<String> {
        let troubles = troubles
            .iter()
            .map(|(kind, name, why)| LastingProblem::new(*kind, (*name).into(), (*why).into()));
        let alerts = seen.look(up, troubles.collect());
        let subjects = alerts.into_iter().map(|(alert, _)| alert.subject);
        subjects.collect()
    }

    #[test]
    fn an_unchanged_state_is_not_reported_again() {
        let mut seen = WatchedState::default();
        let mut look = |up, troubles: &[_]| look(&mut seen, up, troubles);
        let stale = |why| [(AlertKind::Stale, "plans `a`", why)];
        assert!(look(None, &[]).is_empty() && look(Some(true), &[]).is_empty());
        assert_eq!(look(Some(false), &[]), ["away"]);
        assert_eq!(look(Some(false), &stale("gone")), ["plans `a`"]);
        assert!(look(Some(false), &stale("still gone")).is_empty());
        assert_eq!(look(Some(true), &[]), ["back", "plans `a`, again"]);
    }

    #[test]
    fn a_rejected_config_was_reported_late_and_as_unreadable() {
        let mut seen = WatchedState::default();
        let rejected = (AlertKind::Config, "policy of `file`", "line 3");
        let away = (AlertKind::Stale, "policy of `file`", "no answer");
        assert_eq!(look(&mut seen, None, &[rejected]), ["policy of `file`"]);
        assert!(look(&mut seen, None, &[rejected]).is_empty());
        // Unreachable as well: each is reported, and each ends separately.
        assert_eq!(
            look(&mut seen, None, &[away, rejected]),
            ["policy of `file`"]
        );
        assert_eq!(look(&mut seen, None, &[away]), ["policy of `file`, again"]);
        assert_eq!(look(&mut seen, None, &[]), ["policy of `file`, again"]);
        let alert = LastingProblem::new(rejected.0, rejected.1.into(), rejected.2.into()).begins();
        assert!(alert.message.contains("rejected"), "{}", alert.message);
    }
}
