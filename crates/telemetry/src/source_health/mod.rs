//! The health of each config source, for metrics and status.

mod view;

pub use view::SourceView;

use parking_lot::{Mutex, RwLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// The outcome of loading a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
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
            Self::Refused => "rejected",
            Self::Failed => "failed",
        }
    }
}

/// The health of one source.
#[derive(Debug)]
pub struct SourceHealth {
    name: String,
    kind: &'static str,
    is_writable: bool,
    counts: [AtomicU64; FetchOutcome::ALL.len()],
    report: Mutex<SourceReport>,
}

#[derive(Debug, Default)]
struct SourceReport {
    answered: Option<Instant>,
    applied: Option<Instant>,
    version: Option<String>,
    /// Set while the source cannot be loaded.
    failing: Option<SourceProblem>,
    /// Set while its latest version cannot be served, whether or not it can be loaded at present.
    refused: Option<SourceProblem>,
    is_fallback: bool,
}

/// A problem: the time since it exists, and its current reason.
#[derive(Debug)]
struct SourceProblem {
    since: Instant,
    why: String,
}

impl SourceReport {
    /// Returns the current problem. A source that does not answer takes precedence.
    fn problem(&self) -> Option<&SourceProblem> {
        self.failing.as_ref().or(self.refused.as_ref())
    }
}

impl SourceProblem {
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
    /// Creates the health of a source that has not been loaded yet.
    pub fn new(name: &str, kind: &'static str, is_writable: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            kind,
            is_writable,
            counts: Default::default(),
            report: Mutex::default(),
        })
    }

    /// Records that the source answered, regardless of the result.
    pub fn answered(&self) {
        let mut state = self.report.lock();
        state.answered = Some(Instant::now());
        state.failing = None;
    }

    /// Records that the source is unchanged.
    pub fn unchanged(&self) {
        self.answered();
        self.count(FetchOutcome::Unchanged);
    }

    /// Records that a new version is served.
    pub fn applied(&self, version: &str) {
        self.serves(version);
        self.count(FetchOutcome::Applied);
    }

    /// Records that this version is served, without counting a change.
    pub fn serves(&self, version: &str) {
        let mut state = self.report.lock();
        state.applied = Some(Instant::now());
        state.version = Some(version.to_owned());
        state.refused = None;
        state.is_fallback = false;
    }

    /// Records that the fallback is served.
    pub fn falls_back(&self) {
        let mut state = self.report.lock();
        state.applied = Some(Instant::now());
        state.is_fallback = true;
    }

    /// Records that the latest version cannot be served.
    pub fn refused(&self, why: String) {
        SourceProblem::note(&mut self.report.lock().refused, why);
        self.count(FetchOutcome::Refused);
    }

    /// Records that the latest version still cannot be served, perhaps for another reason. This does not
    /// count as a new refusal.
    pub fn still_refused(&self, why: String) {
        SourceProblem::note(&mut self.report.lock().refused, why);
    }

    /// Records that the source could not be loaded. Returns true if it could before.
    pub fn failed(&self, trouble: &dyn fmt::Display) -> bool {
        let is_news = SourceProblem::note(&mut self.report.lock().failing, trouble.to_string());
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
    pub fn counts(&self) -> impl Iterator<Item = (FetchOutcome, u64)> + '_ {
        let counts = self.counts.iter().map(|it| it.load(Relaxed));
        FetchOutcome::ALL.into_iter().zip(counts)
    }

    /// Returns the status.
    pub fn status(&self) -> SourceView {
        let state = self.report.lock();
        let since = |at: Option<Instant>| at.map(|at| at.elapsed());
        SourceView {
            name: self.name.clone(),
            kind: self.kind,
            is_writable: self.is_writable,
            version: state.version.clone(),
            age: since(state.answered),
            applied: since(state.applied),
            is_stale: state.failing.is_some(),
            is_refused: state.refused.is_some(),
            is_fallback: state.is_fallback,
            error: state.problem().map(|ill| ill.why.clone()),
        }
    }

    /// Returns true if the last load failed.
    pub fn is_failing(&self) -> bool {
        self.report.lock().failing.is_some()
    }

    /// Returns since when loads fail, and why.
    pub(crate) fn failing(&self) -> Option<(Duration, String)> {
        let state = self.report.lock();
        let ill = state.failing.as_ref()?;
        Some((ill.since.elapsed(), ill.why.clone()))
    }

    /// Returns why its latest version cannot be served, if so.
    pub fn refusal(&self) -> Option<String> {
        let state = self.report.lock();
        state.refused.as_ref().map(|ill| ill.why.clone())
    }

    /// Returns the name of the source.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The health of all sources of a server, for metrics and status. The list is replaced when the file
/// names other sources.
#[derive(Debug, Default)]
pub struct SourceHealthList(RwLock<Vec<Arc<SourceHealth>>>);

impl SourceHealthList {
    /// Sets the current sources, the file first.
    pub fn hang(&self, sources: Vec<Arc<SourceHealth>>) {
        *self.0.write() = sources;
    }

    /// Returns the current sources.
    pub fn sources(&self) -> Vec<Arc<SourceHealth>> {
        self.0.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchOutcome, SourceHealth};

    fn away() -> &'static str {
        "requires a password"
    }

    fn trouble(health: &SourceHealth) -> Option<String> {
        health.status().error
    }

    #[test]
    fn a_recovered_source_still_reported_its_old_error() {
        let health = SourceHealth::new("redis", "redis", false);
        health.answered();
        health.refused("one rule is wrong".to_owned());
        assert!(health.failed(&away()), "it is news");
        assert_eq!(trouble(&health).as_deref(), Some("requires a password"));
        health.unchanged();
        let standing = health.status();
        assert!(standing.is_refused && !standing.is_stale);
        assert_eq!(standing.error.as_deref(), Some("one rule is wrong"));
        assert_eq!(health.refusal().as_deref(), Some("one rule is wrong"));
        assert_eq!(health.failing(), None);
    }

    #[test]
    fn a_changed_rejection_during_an_outage_is_reported_afterwards() {
        let health = SourceHealth::new("redis", "redis", false);
        health.refused("the first".to_owned());
        health.failed(&away());
        assert!(!health.failed(&away()), "it is no news");
        health.still_refused("the second".to_owned());
        assert_eq!(trouble(&health).as_deref(), Some("requires a password"));
        health.answered();
        assert_eq!(trouble(&health).as_deref(), Some("the second"));
        let refused = health.counts().find(|(it, _)| *it == FetchOutcome::Refused);
        assert_eq!(refused.map(|(_, count)| count), Some(1));
        health.serves("2");
        assert_eq!((trouble(&health), health.refusal()), (None, None));
    }
}
