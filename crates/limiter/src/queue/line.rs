//! Lines before windows: the first to arrive is the first to call the store. In this process only.
//!
//! A window cannot be overdrawn, so no request can reserve a place in it: a request that waits has to call
//! the store again. If all did, the last to arrive would be as likely to pass as the first. So only the first
//! of a line calls the store, and a request that arrives while there is a line joins its end without calling
//! the store.
//!
//! Every request has a number, in order of arrival, and is in one line at a time: that of the bucket that
//! refused last. A request that changes lines keeps its number. So there is always one request that nothing
//! keeps from calling the store, and no two requests ever wait for each other.

use crate::wait_room::WaitPermit;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use tidegate_core::{Outcome, Timestamp, Wait};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The shortest wait of a refusal that has been waited for and is over.
const AT_LEAST_US: u64 = 1_000;

/// All lines of a limiter, by the names of buckets. An empty line is removed.
#[derive(Debug, Default)]
pub(crate) struct WaitLines {
    by_bucket: Mutex<HashMap<Box<[u8]>, WaitLine, RandomState>>,
    /// The number of lines, for requests that only check for one.
    count: AtomicUsize,
    arrivals: AtomicU64,
}

#[derive(Debug)]
struct WaitLine {
    standing: BTreeMap<u64, Arc<Notify>>,
    refusal: LastRefusal,
}

/// The last refusal of the first request of a line: the outcomes of the bands of its limit.
#[derive(Clone, Debug)]
pub(super) struct LastRefusal {
    /// By the store's clock.
    pub(super) at: Timestamp,
    /// By the clock of this process.
    pub(super) heard: Instant,
    pub(super) outcomes: SmallVec<[Outcome; 2]>,
}

/// A request in a line, until it is dropped.
#[derive(Debug)]
pub(super) struct QueuedRequest<'a> {
    lines: &'a WaitLines,
    bucket: Box<[u8]>,
    number: u64,
    /// Notified when it may be the first, or when the first has reason to ask again.
    bell: Arc<Notify>,
    permit: WaitPermit,
}

impl WaitLines {
    /// Returns the number for a request that arrives now.
    pub(super) fn arrive(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    /// Returns the last refusal of the line before `bucket`, if a request with a lower number is in it.
    pub(super) fn before(&self, bucket: &[u8], number: u64) -> Option<LastRefusal> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let lines = self.by_bucket.lock();
        let line = lines.get(bucket)?;
        let (first, _) = line.standing.first_key_value()?;
        (*first < number).then(|| line.refusal.clone())
    }

    /// Wakes the first request of the line before `bucket`, if there is one.
    pub(super) fn ring(&self, bucket: &[u8]) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let lines = self.by_bucket.lock();
        let first = lines
            .get(bucket)
            .and_then(|line| line.standing.first_key_value());
        if let Some((_, bell)) = first {
            bell.notify_one();
        }
    }

    /// Joins the line before `bucket`, with this number, and shares its refusal with the others.
    pub(super) fn stand(
        &self,
        bucket: &[u8],
        number: u64,
        refusal: LastRefusal,
        mut permit: WaitPermit,
    ) -> QueuedRequest<'_> {
        permit.begin();
        let bell = Arc::new(Notify::new());
        let mut lines = self.by_bucket.lock();
        let line = lines.entry(bucket.into()).or_insert_with(|| WaitLine {
            standing: BTreeMap::new(),
            refusal: refusal.clone(),
        });
        line.standing.insert(number, Arc::clone(&bell));
        line.keep_refusal(refusal);
        self.count.store(lines.len(), Relaxed);
        drop(lines);
        QueuedRequest {
            lines: self,
            bucket: bucket.into(),
            number,
            bell,
            permit,
        }
    }
}

impl WaitLine {
    /// Keeps the latest refusal.
    fn keep_refusal(&mut self, refusal: LastRefusal) {
        if refusal.heard >= self.refusal.heard {
            self.refusal = refusal;
        }
    }
}

impl LastRefusal {
    /// Adjusts the refusal to the time `now`. A refused outcome stays refused.
    pub(super) fn age(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.heard).as_micros();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.at = self.at.plus(passed);
        self.heard = now;
        for outcome in &mut self.outcomes {
            outcome.reset_us = outcome.reset_us.saturating_sub(passed);
            if let Some(wait) = outcome.wait.as_micros()
                && wait > 0
                && !outcome.wait.is_release()
            {
                let left = wait.saturating_sub(passed).max(AT_LEAST_US);
                outcome.wait = Wait::from_micros(left);
            }
        }
    }
}

impl QueuedRequest<'_> {
    /// Returns true if it is in the line before `bucket`.
    pub(super) fn is_before(&self, bucket: &[u8]) -> bool {
        *self.bucket == *bucket
    }

    /// Shares its refusal with the others.
    pub(super) fn tell(&self, refusal: LastRefusal) {
        let mut lines = self.lines.by_bucket.lock();
        if let Some(line) = lines.get_mut(&self.bucket) {
            line.keep_refusal(refusal);
        }
    }

    /// Waits until it may be the first or, if it is, until permits are released.
    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Returns the last refusal of the line.
    pub(super) fn last_refusal(&self) -> Option<LastRefusal> {
        let lines = self.lines.by_bucket.lock();
        lines.get(&self.bucket).map(|line| line.refusal.clone())
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.permit.end();
        let mut lines = self.lines.by_bucket.lock();
        let Some(line) = lines.get_mut(&self.bucket) else {
            return;
        };
        let was_first = line.standing.first_key_value();
        let was_first = was_first.is_some_and(|(first, _)| *first == self.number);
        line.standing.remove(&self.number);
        match line.standing.first_key_value() {
            Some((_, next)) if was_first => next.notify_one(),
            Some(_) => {}
            None => {
                lines.remove(&self.bucket);
                self.lines.count.store(lines.len(), Relaxed);
            }
        }
    }
}
