//! How it stands with each source.

use super::source::Trouble;
use super::view::Standing;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// What came of asking a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It said something new, which is served.
    Applied,
    /// It said what it said before.
    Unchanged,
    /// It said something that cannot be served.
    Refused,
    /// It could not be asked.
    Failed,
}

impl Outcome {
    /// All of them, in the order of their counters.
    pub(crate) const ALL: [Self; 4] = [Self::Applied, Self::Unchanged, Self::Refused, Self::Failed];

    /// It in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// How it stands with one source.
#[derive(Debug)]
pub(crate) struct Health {
    name: String,
    kind: &'static str,
    is_writable: bool,
    counts: [AtomicU64; Outcome::ALL.len()],
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    answered: Option<Instant>,
    applied: Option<Instant>,
    version: Option<String>,
    failing_since: Option<Instant>,
    refused_since: Option<Instant>,
    is_fallback: bool,
    trouble: Option<String>,
}

impl Health {
    pub(super) fn new(name: &str, kind: &'static str, is_writable: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            kind,
            is_writable,
            counts: Default::default(),
            told: Mutex::default(),
        })
    }

    /// It answered, whatever will come of it.
    pub(super) fn answered(&self) {
        let mut told = self.told.lock();
        told.answered = Some(Instant::now());
        told.failing_since = None;
        if told.refused_since.is_none() {
            told.trouble = None;
        }
    }

    /// It said what it said before.
    pub(super) fn unchanged(&self) {
        self.answered();
        self.count(Outcome::Unchanged);
    }

    /// What it said is served.
    pub(super) fn applied(&self, version: &str) {
        self.serves(version);
        self.count(Outcome::Applied);
    }

    /// What it said is served, as it was before.
    pub(super) fn serves(&self, version: &str) {
        let mut told = self.told.lock();
        told.applied = Some(Instant::now());
        told.version = Some(version.to_owned());
        told.refused_since = None;
        told.is_fallback = false;
        if told.failing_since.is_none() {
            told.trouble = None;
        }
    }

    /// What was written beside its address is served.
    pub(super) fn falls_back(&self) {
        let mut told = self.told.lock();
        told.applied = Some(Instant::now());
        told.is_fallback = true;
    }

    /// What it said cannot be served.
    pub(super) fn refused(&self, why: String) {
        let mut told = self.told.lock();
        told.refused_since.get_or_insert_with(Instant::now);
        told.trouble = Some(why);
        drop(told);
        self.count(Outcome::Refused);
    }

    /// What it said cannot be served still, if for another reason: that is no new refusal.
    pub(super) fn still_refused(&self, why: String) {
        let mut told = self.told.lock();
        told.refused_since.get_or_insert_with(Instant::now);
        if told.failing_since.is_none() {
            told.trouble = Some(why);
        }
    }

    /// It could not be asked. Tells whether that is news.
    pub(super) fn failed(&self, trouble: &Trouble) -> bool {
        let mut told = self.told.lock();
        let is_news = told.failing_since.is_none();
        told.failing_since.get_or_insert_with(Instant::now);
        told.trouble = Some(trouble.to_string());
        drop(told);
        self.count(Outcome::Failed);
        is_news
    }

    fn count(&self, outcome: Outcome) {
        let place = Outcome::ALL.iter().position(|it| *it == outcome);
        if let Some(counter) = place.and_then(|place| self.counts.get(place)) {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// How often it came to what.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        let counts = self.counts.iter().map(|it| it.load(Relaxed));
        Outcome::ALL.into_iter().zip(counts)
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> Standing {
        let told = self.told.lock();
        let since = |at: Option<Instant>| at.map(|at| at.elapsed());
        Standing {
            name: self.name.clone(),
            kind: self.kind,
            is_writable: self.is_writable,
            version: told.version.clone(),
            age: since(told.answered),
            applied: since(told.applied),
            is_stale: told.failing_since.is_some(),
            is_refused: told.refused_since.is_some(),
            is_fallback: told.is_fallback,
            trouble: told.trouble.clone(),
        }
    }

    /// Whether it could not be asked when it last was.
    pub(super) fn is_failing(&self) -> bool {
        self.told.lock().failing_since.is_some()
    }

    /// For how long it could not be asked, or what it says could not be served, and why.
    pub(crate) fn trouble(&self) -> Option<(Duration, String)> {
        let told = self.told.lock();
        let since = told.failing_since.or(told.refused_since)?;
        Some((since.elapsed(), told.trouble.clone().unwrap_or_default()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// How it stands with all sources of a server, for those who watch. The list is replaced when the file
/// names others.
#[derive(Debug, Default)]
pub(crate) struct Board(RwLock<Vec<Arc<Health>>>);

impl Board {
    /// Those that there are from now on, the file first.
    pub(super) fn hang(&self, sources: Vec<Arc<Health>>) {
        *self.0.write() = sources;
    }

    /// Those that there are.
    pub(crate) fn sources(&self) -> Vec<Arc<Health>> {
        self.0.read().clone()
    }
}
