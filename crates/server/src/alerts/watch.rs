//! Looks out for what nobody would tell: a store that is away, lists and plans that grow old.

use super::{Alert, Bell};
use crate::live::Board;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Limiter, Store};
use tidegate_policy::alerts::AlertKind;
use tokio::time::sleep;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

/// What has failed for less than this may be over in a moment.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks out until nobody decides any more, and rings when something stands otherwise than before.
pub(crate) async fn watch<S: Store>(limiter: Limiter<S>, sources: Arc<Board>, bell: Bell) {
    let mut seen = Seen::default();
    loop {
        sleep(EVERY).await;
        let store = match limiter.store_health() {
            // Nobody else may ask for a while, and it would stay away for as long.
            Some(health) if !health.is_up => limiter.probe_store().await,
            health => health,
        };
        let store = store.map(|health| health.is_up);
        for (alert, over) in seen.look(store, &stale(&limiter, &sources)) {
            // So that it is told if it comes again, however soon.
            bell.forget(alert.kind, &over);
            bell.ring(alert);
        }
    }
}

/// What could not be loaded for a while: what it is called, and why.
fn stale<S: Store>(limiter: &Limiter<S>, sources: &Board) -> Vec<(String, String)> {
    let is_long = |failing_for: Option<Duration>| failing_for.is_some_and(|it| it >= PATIENCE);
    let lists = limiter.lists().into_iter();
    let lists = lists.filter(|list| is_long(list.failing_for)).map(|list| {
        let name = format!("the list of guard `{}`", list.guard);
        (name, list.error.unwrap_or_default())
    });
    let plans = limiter.plans().into_iter();
    let plans = plans
        .filter(|plans| is_long(plans.failing_for))
        .map(|plans| {
            let name = format!("plans `{}`", plans.name);
            (name, plans.error.unwrap_or_default())
        });
    let sources = sources.sources().into_iter().filter_map(|source| {
        let (since, why) = source.trouble()?;
        let name = format!("policy of `{}`", source.name());
        (since >= PATIENCE).then_some((name, why))
    });
    lists.chain(plans).chain(sources).collect()
}

/// The subject of what can be loaded again.
fn again(name: &str) -> String {
    format!("{name}, again")
}

/// What stood how, when it was last looked at.
#[derive(Debug, Default)]
struct Seen {
    store_away: bool,
    stale: Vec<String>,
}

impl Seen {
    /// What stands otherwise than before, each with the subject of what is over by that. `store_up` is
    /// absent where a store cannot be away.
    fn look(&mut self, store_up: Option<bool>, stale: &[(String, String)]) -> Vec<(Alert, String)> {
        let mut alerts = Vec::new();
        let away = store_up == Some(false);
        if away != self.store_away {
            self.store_away = away;
            // Apart from each other, so that neither is taken for the other said twice.
            let (subject, over, message) = if away {
                let message =
                    "The store does not answer; limits go on without it, as `on_failure` says.";
                ("away", "back", message)
            } else {
                ("back", "away", "The store answers again.")
            };
            let alert = Alert::new(AlertKind::Store, subject, message);
            alerts.push((alert, over.to_owned()));
        }
        for (name, error) in stale.iter().filter(|(name, _)| !self.stale.contains(name)) {
            let message = format!(
                "Cannot load {name}, and go on with the last that could be, if any: {error}."
            );
            let alert = Alert::new(AlertKind::Stale, name, message);
            alerts.push((alert, again(name)));
        }
        for name in &self.stale {
            if !stale.iter().any(|(known, _)| known == name) {
                let message = format!("{name}: can be loaded again.");
                let alert = Alert::new(AlertKind::Stale, &again(name), message);
                alerts.push((alert, name.clone()));
            }
        }
        self.stale = stale.iter().map(|(name, _)| name.clone()).collect();
        alerts
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn what_stands_as_before_is_not_told_again() {
        let mut seen = Seen::default();
        let mut look = |up, stale: &[(&str, &str)]| {
            let stale = stale.iter().map(|(a, b)| ((*a).into(), (*b).into()));
            let stale: Vec<(String, String)> = stale.collect();
            let alerts = seen.look(up, &stale);
            let subjects = alerts.into_iter().map(|(alert, _)| alert.subject);
            subjects.collect::<Vec<_>>()
        };
        assert!(look(None, &[]).is_empty() && look(Some(true), &[]).is_empty());
        assert_eq!(look(Some(false), &[]), ["away"]);
        assert_eq!(look(Some(false), &[("plans `a`", "gone")]), ["plans `a`"]);
        assert!(look(Some(false), &[("plans `a`", "still gone")]).is_empty());
        assert_eq!(look(Some(true), &[]), ["back", "plans `a`, again"]);
    }
}
