//! Decides on copies of buckets, and writes them if no other caller has written since.

use super::codec::{StoredBucket, encode};
use super::{CompareAndSwap, KeyChange, KeySwap, Snapshot};
use crate::{
    Ask, Bucket, BucketState, Inspection, Quota, Reply, SharedState, Store, StoreError,
    StoreErrorKind, Timestamp, shared_state::StateFuture, step,
};
use std::time::Duration;

/// Attempts at one request before it fails. Whenever one attempt fails, another caller's has succeeded.
const ATTEMPTS_MAX: u32 = 16;

/// The pause before the second attempt. It doubles before each further one, up to 32 ms.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Number of times that the pause doubles.
const DOUBLINGS_MAX: u32 = 5;

/// The default of [`CasStore::clock_skew_max`].
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(1);

/// The key of [`SharedState::secret`]. Those of buckets end in `/` and sixteen digits.
const SECRET: &[u8] = b"secret";

/// Time that a secret is kept after it was read: a day, and a margin.
const SECRET_KEPT: Duration = Duration::from_secs(90_000);

/// A [`Store`] over [`CompareAndSwap`].
///
/// Each bucket is a key: the bucket's name, `/`, and [`Quota::id`] in sixteen hexadecimal digits.
///
/// # Time
///
/// Few of these stores have a clock that can be read, so each instance may bring its own. The value of a
/// bucket carries the instant of its last write. A request is decided at the latest of these instants and
/// the time that was read. So the instants of a bucket never run backwards, whichever instance writes it
/// (law 3). A clock that is ahead by a second gives out once what refills in a second.
///
/// An instant further ahead than [`clock_skew_max`](Self::clock_skew_max) is that of a broken clock. Such a
/// bucket is decided at the time that was read, and counts as used up at that time.
#[derive(Clone, Debug)]
pub struct CasStore<T> {
    /// The backend.
    backend: T,
    /// Clock skew that is accepted, in microseconds.
    clock_skew_max_us: u64,
}

/// Buckets of a request as they were read.
struct ReadBuckets {
    /// The instant to decide at.
    now: Timestamp,
    /// The time that was read.
    at: Timestamp,
    /// The states that still matter, in the order of their keys.
    states: Vec<Option<Bucket>>,
}

impl<T: CompareAndSwap> CasStore<T> {
    /// Creates a store over `backend`.
    pub fn new(backend: T) -> Self {
        Self {
            backend,
            clock_skew_max_us: micros(CLOCK_SKEW_MAX),
        }
    }

    /// Sets how far apart the clocks of two instances may be. Buckets are kept for so much longer: none
    /// expires while it matters to an instance whose clock is behind. Default: 1 s.
    #[must_use]
    pub fn clock_skew_max(self, skew: Duration) -> Self {
        Self {
            clock_skew_max_us: micros(skew),
            ..self
        }
    }

    /// Returns the store below.
    pub fn backend(&self) -> &T {
        &self.backend
    }

    /// Decides on the buckets of `keys`, and writes those that `decide` changes.
    async fn update<R: Send>(
        &self,
        keys: &[Vec<u8>],
        quotas: &[&Quota],
        mut decide: impl FnMut(&mut [Bucket], Timestamp) -> R + Send,
    ) -> Result<R, StoreError> {
        let attempt = |snapshot: &Snapshot<T::Version>| {
            let read = self.buckets(snapshot, quotas)?;
            let mut buckets: Vec<Bucket> = read
                .states
                .iter()
                .zip(quotas)
                .map(clamped(read.now))
                .collect();
            let result = decide(&mut buckets, read.now);
            let changes = read.states.iter().zip(&buckets).zip(quotas);
            let changes = changes
                .map(|((before, after), quota)| self.change(&read, before.as_ref(), after, quota));
            Ok((result, changes.collect()))
        };
        self.retry(keys, attempt).await
    }

    /// Reads `keys`, and makes the changes that `attempt` returns for them. Starts again if another caller
    /// has changed one of the keys in between.
    async fn retry<R: Send>(
        &self,
        keys: &[Vec<u8>],
        mut attempt: impl FnMut(&Snapshot<T::Version>) -> Result<(R, Vec<KeyChange>), StoreError> + Send,
    ) -> Result<R, StoreError> {
        for nth in 0..ATTEMPTS_MAX {
            if let Some(doublings) = nth.checked_sub(1) {
                let factor = 1_u32 << doublings.min(DOUBLINGS_MAX);
                self.backend.pause(PAUSE_MIN.saturating_mul(factor)).await;
            }
            let snapshot = self.read(keys).await?;
            let (result, changes) = attempt(&snapshot)?;
            if changes.iter().all(|change| *change == KeyChange::Keep) {
                return Ok(result);
            }
            let swaps: Vec<KeySwap<'_, T::Version>> = keys
                .iter()
                .zip(&snapshot.values)
                .zip(changes)
                .map(|((key, value), change)| KeySwap {
                    key,
                    expected: &value.version,
                    change,
                })
                .collect();
            if self.backend.swap(&swaps).await? {
                return Ok(result);
            }
        }
        let why = format!("others changed the same buckets {ATTEMPTS_MAX} times in a row");
        Err(StoreError::transient(why).with_kind(StoreErrorKind::Overloaded))
    }

    /// Reads the values of the keys.
    ///
    /// # Errors
    ///
    /// [`StoreError`] from the backend, or if it returns another number of values.
    async fn read(&self, keys: &[Vec<u8>]) -> Result<Snapshot<T::Version>, StoreError> {
        let snapshot = self.backend.read(keys).await?;
        let (values, keys) = (snapshot.values.len(), keys.len());
        if values != keys {
            let why = format!("{values} values were read for {keys} keys");
            return Err(StoreError::permanent(why));
        }
        Ok(snapshot)
    }

    /// Decodes the states of a snapshot, and finds the instant to decide at.
    fn buckets(
        &self,
        snapshot: &Snapshot<T::Version>,
        quotas: &[&Quota],
    ) -> Result<ReadBuckets, StoreError> {
        let mut stored = Vec::with_capacity(quotas.len());
        for value in &snapshot.values {
            let decoded = value.value.as_deref().map(StoredBucket::parse);
            stored.push(decoded.map(|it| it.ok_or_else(corrupt)).transpose()?);
        }
        let latest = snapshot.at.plus(self.clock_skew_max_us);
        let written = stored.iter().flatten().map(|it| it.written);
        let written = written.filter(|written| *written <= latest).max();
        let now = written.map_or(snapshot.at, |written| written.max(snapshot.at));
        let mut states = Vec::with_capacity(quotas.len());
        for (stored, quota) in stored.into_iter().zip(quotas) {
            let state = stored.map(|it| it.bucket(quota, now).ok_or_else(corrupt));
            let state = state.transpose()?;
            states.push(state.filter(|state| state.fresh_at(quota) > now));
        }
        Ok(ReadBuckets {
            now,
            at: snapshot.at,
            states,
        })
    }

    /// Returns the change of a key: none if the state is the same, or absent and full.
    fn change(
        &self,
        read: &ReadBuckets,
        before: Option<&Bucket>,
        after: &Bucket,
        quota: &Quota,
    ) -> KeyChange {
        let fresh_at = after.fresh_at(quota);
        let is_fresh = fresh_at <= read.now;
        if before == Some(after) || (before.is_none() && is_fresh) {
            return KeyChange::Keep;
        }
        // Count from the instance's own time, because the store's timer keeps pace with that. A
        // bucket that was refunded until it is full keeps its instant: an instance whose clock is
        // behind would decide it earlier, and units that refilled in between would be granted
        // twice.
        let keep_for = fresh_at
            .max(read.now)
            .since(read.at)
            .saturating_add(self.clock_skew_max_us);
        if is_fresh && keep_for == 0 {
            return KeyChange::Delete;
        }
        KeyChange::Put {
            value: encode(after, quota, read.now),
            keep_for: Duration::from_micros(keep_for),
        }
    }
}

impl<T: CompareAndSwap> Store for CasStore<T> {
    async fn decide(&self, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
        if asks.iter().any(|ask| ask.quota.algorithm().is_concurrent()) {
            return Err(StoreError::no_permits());
        }
        let mut keys: Vec<Vec<u8>> = Vec::with_capacity(asks.len());
        let mut quotas: Vec<&Quota> = Vec::with_capacity(asks.len());
        let mut places = Vec::with_capacity(asks.len());
        for ask in asks {
            let key = key(ask.bucket, ask.quota);
            let place = keys.iter().position(|known| *known == key);
            places.push(place.unwrap_or(keys.len()));
            if place.is_none() {
                keys.push(key);
                quotas.push(ask.quota);
            }
        }
        let decide = |buckets: &mut [Bucket], now| step::decide(asks, &places, buckets, now);
        self.update(&keys, &quotas, decide).await
    }

    async fn inspect(
        &self,
        bucket: &[u8],
        quota: &Quota,
    ) -> Result<Option<Inspection>, StoreError> {
        let snapshot = self.read(&[key(bucket, quota)]).await?;
        let read = self.buckets(&snapshot, &[quota])?;
        let state = read.states.into_iter().next().flatten();
        Ok(state.map(|bucket| Inspection {
            at: read.now,
            bucket,
        }))
    }

    async fn reset(&self, bucket: &[u8], quota: &Quota) -> Result<bool, StoreError> {
        let forget = |snapshot: &Snapshot<T::Version>| {
            let read = self.buckets(snapshot, &[quota])?;
            let mattered = read.states.iter().any(Option::is_some);
            let is_there = snapshot.values.iter().any(|it| it.value.is_some());
            let change = if is_there {
                KeyChange::Delete
            } else {
                KeyChange::Keep
            };
            Ok((mattered, vec![change]))
        };
        self.retry(&[key(bucket, quota)], forget).await
    }

    fn shared_state(&self) -> Option<&dyn SharedState> {
        Some(self)
    }
}

impl<T: CompareAndSwap> SharedState for CasStore<T> {
    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        let attempt = move |snapshot: &Snapshot<T::Version>| {
            let kept = snapshot.values.first().and_then(|it| it.value.as_deref());
            let secret: [u8; 32] = match kept {
                Some(kept) => kept.try_into().map_err(|_| corrupt())?,
                None => proposal,
            };
            // Written each time: it is to be kept for a day from now.
            let change = KeyChange::Put {
                value: secret.to_vec(),
                keep_for: SECRET_KEPT,
            };
            Ok((secret, vec![change]))
        };
        Some(Box::pin(async move {
            self.retry(&[SECRET.to_vec()], attempt).await
        }))
    }
}

/// Makes the bucket to decide on of the state that was read.
fn clamped(now: Timestamp) -> impl Fn((&Option<Bucket>, &&Quota)) -> Bucket {
    move |(state, quota)| {
        let mut bucket = state.clone().unwrap_or_else(|| Bucket::new(quota));
        bucket.clamp_to_now(quota, now);
        bucket
    }
}

/// Returns the key of a bucket under a quota.
fn key(bucket: &[u8], quota: &Quota) -> Vec<u8> {
    let band = format!("/{:016x}", quota.id().as_u64());
    [bucket, band.as_bytes()].concat()
}

/// Returns the error for a value that cannot be decoded.
fn corrupt() -> StoreError {
    StoreError::permanent("a bucket holds a value that Tidegate did not write")
        .with_kind(StoreErrorKind::Corrupt)
}

/// Returns the time in whole microseconds, at most the largest number.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
