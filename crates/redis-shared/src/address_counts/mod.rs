//! Request counts by address: a map of the present period, and one of all time.
//!
//! Both are hashes of a name (an address) and its number of requests, which other systems may read and
//! write as well. Any number of instances add to them in batches. Each batch counts **once**, even if it
//! has to be sent several times. At the end of a period one of the instances gets the map to process it,
//! while the others continue counting in a new one.
//!
//! | key | contents |
//! |---|---|
//! | `PERIOD`, `TOTAL` | the maps |
//! | `{PERIOD}:batch:INSTANCE`, `{TOTAL}:batch:INSTANCE` | the last piece that this instance added; for ten minutes |
//! | `{PERIOD}:closing` | the map of the last period, while an instance processes it |
//! | `{PERIOD}:period` | the end of the period, the instance that closes the last one and its lease, figures |
//!
//! | module | contents |
//! |---|---|
//! | `batch` | counts in flight, and their state |
//! | `tally` | one of the maps, to which batches are added |
//! | `closing` | the end of a period |
//! | `map` | one map and its periods, as the limiter sees them |
//! | `top` | the largest counts |
//!
//! All instants are the server's, and all keys of a script share a slot. Counts are as durable as
//! Redis: a failover may lose some.

mod batch;
mod closing;
mod map;
mod tally;
mod top;

pub use batch::{BatchPlacement, CountBatch, MapPlacement};
pub use closing::{CensusFigures, ClosingToken, PeriodClose};
pub(crate) use map::MapCounts;

use closing::Periods;
use std::time::Duration;
use tally::AddressCounts;
use tidegate_redis_client::jitter::random;
use tidegate_redis_client::{CallError, Connection};

/// The field for all addresses without their own: the map was full, or their field is no number.
pub const OTHER: &str = "other";

/// One of the two maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CensusMap {
    /// That of the present period.
    Period,
    /// That of all time.
    Total,
}

/// The names of the maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CensusNames {
    /// The map of the present period.
    pub period: String,
    /// The map of all time.
    pub total: String,
}

/// The bounds of the maps, and their lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CensusLimits {
    /// The most fields of the map of a period, besides [`OTHER`].
    pub period_max: u64,
    /// The most fields of the map of all time, besides [`OTHER`].
    pub total_max: u64,
    /// The lifetime of the map of all time, after which it starts from zero; `None`: it never ends.
    /// Counts from the creation of the map; a map that existed before keeps its expiry.
    pub total_lasts: Option<Duration>,
}

/// One instance's part in counting.
///
/// # Examples
///
/// ```no_run
/// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tidegate_redis_shared::{CountBatch, Census, CensusLimits, CensusNames, PeriodClose};
///
/// let names = CensusNames {
///     period: "CurrentPeriodMap".to_owned(),
///     total: "AllIPsMap".to_owned(),
/// };
/// let limits = CensusLimits {
///     period_max: 1_000_000,
///     total_max: 1_000_000,
///     total_lasts: None,
/// };
/// let mut census = Census::new(connection, &names, limits);
///
/// let mut batch = CountBatch::new(vec![(b"192.0.2.1".to_vec(), 17)]);
/// while census.add(&mut batch).await.is_err_and(|error| error.is_transient()) {
///     // Later, with the same batch: it counts once.
/// }
///
/// let (period, lease) = (Duration::from_secs(15), Duration::from_secs(30));
/// if let PeriodClose::Mine { token } = census.close(period, lease).await? {
///     let mut many = Vec::new();
///     let counted = census
///         .scan_closing(|address, count| {
///             if count >= 10_000 {
///                 many.push(address.to_vec());
///             }
///         })
///         .await?;
///     // Something is done about the many, and then:
///     census.finish(&token, counted).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Census {
    connection: Connection,
    period: AddressCounts,
    total: AddressCounts,
    periods: Periods,
}

impl Census {
    /// A new instance: its name is its own, so that no batch of an earlier life is taken for one of
    /// this.
    pub fn new(connection: Connection, names: &CensusNames, limits: CensusLimits) -> Self {
        let id = instance_id();
        let (period, total) = (names.period.as_bytes(), names.total.as_bytes());
        Self {
            connection,
            period: AddressCounts::new(period, &id, limits.period_max, None),
            total: AddressCounts::new(total, &id, limits.total_max, limits.total_lasts),
            periods: Periods::new(period, id),
        }
    }

    /// Adds a batch to both maps. After an error call it again with the same batch, immediately or later,
    /// until it succeeds or the batch is dropped. Counts that were added already are not added twice,
    /// even if the result of a call is unknown. The same holds if the future is dropped half way.
    ///
    /// Counts whose result is unknown for longer than eight minutes, or when a later batch is sent first,
    /// stay [doubtful](MapPlacement::doubtful): they may have been counted, and are never counted twice.
    ///
    /// New names get a field only while the map is below its limit. Names whose field holds no number (or
    /// one too large to add to) keep it as it is. Both count in [`OTHER`]. A map that is no hash is an
    /// error, which names the key. If one map fails, the other is still added to; the first error is
    /// returned.
    pub async fn add(&mut self, batch: &mut CountBatch) -> Result<BatchPlacement, CallError> {
        let CountBatch {
            counts,
            period,
            total,
        } = batch;
        // In parallel: an instance that is killed on the way has most likely sent both, or neither.
        let (of_period, of_total) = tokio::join!(
            self.period.send(&self.connection, counts, period),
            self.total.send(&self.connection, counts, total)
        );
        of_period.and(of_total)?;
        Ok(BatchPlacement {
            period: period.landed(),
            total: total.landed(),
        })
    }

    /// The key of a map.
    pub fn key(&self, map: CensusMap) -> &[u8] {
        match map {
            CensusMap::Period => self.period.key(),
            CensusMap::Total => self.total.key(),
        }
    }

    /// Returns the `n` largest counts of a map, largest first, without [`OTHER`] and fields that hold no
    /// number. If the map changes meanwhile, each count is as of some moment during the read.
    pub async fn top(&self, map: CensusMap, n: usize) -> Result<Vec<(Vec<u8>, u64)>, CallError> {
        top::top(&self.connection, self.key(map), n).await
    }

    /// Returns the counts of `names` in a map, in their order; 0 for names without a number.
    pub async fn counts<N: AsRef<[u8]>>(
        &self,
        map: CensusMap,
        names: &[N],
    ) -> Result<Vec<u64>, CallError> {
        top::counts(&self.connection, self.key(map), names).await
    }

    /// Closes the period if it is over, or takes over its closing from an instance that did not
    /// finish within its lease. Exactly one instance gets it.
    ///
    /// The instance that gets it reads the map ([`Census::scan_closing`]), acts on it in a way that may
    /// be repeated, and reports the end ([`Census::finish`]) before `lease` is over. An instance that
    /// calls again although it has it, because it lost the reply or failed half way, gets it again under
    /// a new token. The old token is then invalid.
    ///
    /// A period in which nothing was counted just ends. The first begins with the first call.
    pub async fn close(
        &mut self,
        period: Duration,
        lease: Duration,
    ) -> Result<PeriodClose, CallError> {
        self.periods.close(&self.connection, period, lease).await
    }

    /// Reads the map that is being closed. Returns the sum of its counts, [`OTHER`] included.
    ///
    /// `visit` gets every name and its count, except [`OTHER`] and fields that hold no number. It may get
    /// a name more than once: if servers change meanwhile, everything is read again. The sum counts each
    /// once. Nothing should change this map; a change makes it be read again, and after three attempts
    /// that is an error.
    pub async fn scan_closing(
        &self,
        visit: impl FnMut(&[u8], u64) + Send,
    ) -> Result<u64, CallError> {
        self.periods.scan(&self.connection, visit).await
    }

    /// Ends a closing: deletes the map and updates the totals. Returns `false` and does nothing if the
    /// token is not valid any more, because another instance has taken it over. May be called again.
    pub async fn finish(&self, token: &ClosingToken, counted: u64) -> Result<bool, CallError> {
        let ended = self.periods.finish(&self.connection, token, counted);
        ended.await
    }

    /// Returns the totals of all instances.
    pub async fn figures(&self) -> Result<CensusFigures, CallError> {
        self.periods.figures(&self.connection).await
    }
}

/// A name for an instance that no other has.
fn instance_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}
