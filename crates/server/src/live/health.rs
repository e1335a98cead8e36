//! The health of each source.

use super::source::SourceError;
use super::view::SourceView;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// The outcome of loading a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchOutcome {
    /// The source has a new version, which is served.
    Applied,
    /// The source is unchanged.
    Unchanged,
    /// The source has a new version, which cannot be served.
    Refused,
    /// The source could not be loaded.
    Failed,
}

impl FetchOutcome {
    /// All outcomes, in the order of their counters.
    pub(crate) const ALL: [Self; 4] = [Self::Applied, Self::Unchanged, Self::Refused, Self::Failed];

    /// Returns the outcome's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The health of one source.
#[derive(Debug)]
pub(crate) struct SourceHealth {
    name: String,
    kind: &'static str,
    is_writable: bool,
    counts: [AtomicU64; FetchOutcome::ALL.len()],
    told: Mutex<SourceReport>,
}

#[derive(Debug, Default)]
struct SourceReport {
    answered: Option<Instant>,
    applied: Option<Instant>,
    version: Option<String>,
    /// Set while the source cannot be loaded.
    failing: Option<Ill>,
    /// Set while its latest version cannot be served, whether or not it can be loaded at present.
    refused: Option<Ill>,
    is_fallback: bool,
}

/// A problem: the time since it exists, and its current reason.
#[derive(Debug)]
struct Ill {
    since: Instant,
    why: String,
}

impl SourceReport {
    /// Returns the current problem. A source that does not answer takes precedence.
    fn ill(&self) -> Option<&Ill> {
        self.failing.as_ref().or(self.refused.as_ref())
    }
}

impl Ill {
    /// Records a problem in `ill`. Returns true if there was none before.
    fn note(ill: &mut Option<Self>, why: String) -> bool {
        match ill {
            Some(ill) => {
                ill.why = why;
                false
            }
            None => {
                let since = Instant::now();
                *ill = Some(Self { since, why });
                true
            }
        }
    }
}

impl SourceHealth {
    pub(super) fn new(name: &str, kind: &'static str, is_writable: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            kind,
            is_writable,
            counts: Default::default(),
            told: Mutex::default(),
        })
    }

    /// Records that the source answered, regardless of the result.
    pub(super) fn answered(&self) {
        let mut told = self.told.lock();
        told.answered = Some(Instant::now());
        told.failing = None;
    }

    /// Records that the source is unchanged.
    pub(super) fn unchanged(&self) {
        self.answered();
        self.count(FetchOutcome::Unchanged);
    }

    /// Records that a new version is served.
    pub(super) fn applied(&self, version: &str) {
        self.serves(version);
        self.count(FetchOutcome::Applied);
    }

    /// Records that this version is served, without counting a change.
    pub(super) fn serves(&self, version: &str) {
        let mut told = self.told.lock();
        told.applied = Some(Instant::now());
        told.version = Some(version.to_owned());
        told.refused = None;
        told.is_fallback = false;
    }

    /// Records that the fallback is served.
    pub(super) fn falls_back(&self) {
        let mut told = self.told.lock();
        told.applied = Some(Instant::now());
        told.is_fallback = true;
    }

    /// Records that the latest version cannot be served.
    pub(super) fn refused(&self, why: String) {
        Ill::note(&mut self.told.lock().refused, why);
        self.count(FetchOutcome::Refused);
    }

    /// Records that the latest version still cannot be served, perhaps for another reason. This does not
    /// count as a new refusal.
    pub(super) fn still_refused(&self, why: String) {
        Ill::note(&mut self.told.lock().refused, why);
    }

    /// Records that the source could not be loaded. Returns true if it could before.
    pub(super) fn failed(&self, trouble: &SourceError) -> bool {
        let is_news = Ill::note(&mut self.told.lock().failing, trouble.to_string());
        self.count(FetchOutcome::Failed);
        is_news
    }

    fn count(&self, outcome: FetchOutcome) {
        let place = FetchOutcome::ALL.iter().position(|it| *it == outcome);
        if let Some(counter) = place.and_then(|place| self.counts.get(place)) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of loads by outcome.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (FetchOutcome, u64)> + '_ {
        let counts = self.counts.iter().map(|it| it.load(Relaxed));
        FetchOutcome::ALL.into_iter().zip(counts)
    }

    /// Returns the status.
    pub(crate) fn standing(&self) -> SourceView {
        let told = self.told.lock();
        let since = |at: Option<Instant>| at.map(|at| at.elapsed());
        SourceView {
            name: self.name.clone(),
            kind: self.kind,
            is_writable: self.is_writable,
            version: told.version.clone(),
            age: since(told.answered),
            applied: since(told.applied),
            is_stale: told.failing.is_some(),
            is_refused: told.refused.is_some(),
            is_fallback: told.is_fallback,
            trouble: told.ill().map(|ill| ill.why.clone()),
        }
    }

    /// Returns true if the last load failed.
    pub(super) fn is_failing(&self) -> bool {
        self.told.lock().failing.is_some()
    }

    /// Returns since when loads fail, and why.
    pub(crate) fn failing(&self) -> Option<(Duration, String)> {
        let told = self.told.lock();
        let ill = told.failing.as_ref()?;
        Some((ill.since.elapsed(), ill.why.clone()))
    }

    /// Returns why its latest version cannot be served, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        let told = self.told.lock();
        told.refused.as_ref().map(|ill| ill.why.clone())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The health of all sources of a server, for metrics and status. The list is replaced when the file
/// names other sources.
#[derive(Debug, Default)]
pub(crate) struct Board(RwLock<Vec<Arc<SourceHealth>>>);

impl Board {
    /// Sets the current sources, the file first.
    pub(super) fn hang(&self, sources: Vec<Arc<SourceHealth>>) {
        *self.0.write() = sources;
    }

    /// Returns the current sources.
    pub(crate) fn sources(&self) -> Vec<Arc<SourceHealth>> {
        self.0.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchOutcome, SourceHealth};
    use crate::live::source::SourceError;

    fn away() -> SourceError {
        SourceError("wants a password".to_owned())
    }

    fn trouble(health: &SourceHealth) -> Option<String> {
        health.standing().trouble
    }

    #[test]
    fn a_source_that_was_back_told_on_why_it_had_been_away() {
        let health = SourceHealth::new("redis", "redis", false);
        health.answered();
        health.refused("one rule is wrong".to_owned());
        assert!(health.failed(&away()), "it is news");
        assert_eq!(trouble(&health).as_deref(), Some("wants a password"));
        health.unchanged();
        let standing = health.standing();
        assert!(standing.is_refused && !standing.is_stale);
        assert_eq!(standing.trouble.as_deref(), Some("one rule is wrong"));
        assert_eq!(health.refusal().as_deref(), Some("one rule is wrong"));
        assert_eq!(health.failing(), None);
    }

    #[test]
    fn what_is_refused_for_another_reason_while_nobody_answers_is_told_once_somebody_does() {
        let health = SourceHealth::new("redis", "redis", false);
        health.refused("the first".to_owned());
        health.failed(&away());
        assert!(!health.failed(&away()), "it is no news");
        health.still_refused("the second".to_owned());
        assert_eq!(trouble(&health).as_deref(), Some("wants a password"));
        health.answered();
        assert_eq!(trouble(&health).as_deref(), Some("the second"));
        let refused = health.counts().find(|(it, _)| *it == FetchOutcome::Refused);
        assert_eq!(refused.map(|(_, count)| count), Some(1));
        health.serves("2");
        assert_eq!((trouble(&health), health.refusal()), (None, None));
    }
}
