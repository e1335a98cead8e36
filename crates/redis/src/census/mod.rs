//! Counting who asks how often: a map of the present period, and one of all time.
//!
//! Both are hashes of a name (an address) and how often it asked, which other systems may read and
//! write as well. Any number of instances add to them in batches, each of which counts **once**,
//! however often it has to be sent. At the end of a period one of the instances gets the map to work
//! it off, while the others go on counting in a new one.
//!
//! | key | what it is |
//! |---|---|
//! | `PERIOD`, `TOTAL` | the maps |
//! | `{PERIOD}:batch:INSTANCE`, `{TOTAL}:batch:INSTANCE` | the last piece that this instance added; for ten minutes |
//! | `{PERIOD}:closing` | the map of the last period, while somebody works it off |
//! | `{PERIOD}:period` | when the period is over, who works off the last and until when, figures |
//!
//! | module | what it has |
//! |---|---|
//! | `batch` | counts on their way, and how far they have come |
//! | `tally` | one of the maps, to which batches are added |
//! | `closing` | the end of a period |
//! | `map` | one map and its periods, as the limiter sees them |
//! | `top` | the largest counts |
//!
//! All instants are the server's, and all keys of a script share a slot. It is as exact as Redis is
//! lasting: what a failover loses is lost here as well.

mod batch;
mod closing;
mod map;
mod tally;
mod top;

pub use batch::{BatchPlacement, CountBatch, MapPlacement};
pub use closing::{CensusFigures, Closing, ClosingToken};
pub(crate) use map::MapCounts;

use crate::connection::Connection;
use crate::connection::pace::random;
use crate::error::CallError;
use closing::Periods;
use std::time::Duration;
use tally::AddressCounts;

/// The field that counts for all who have none: the map was full, or held something under their name
/// that is no number.
pub const OTHER: &str = "other";

/// Which of the maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CensusMap {
    /// That of the present period.
    Period,
    /// That of all time.
    Total,
}

/// How the maps are named: two names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CensusNames {
    /// The map of the present period.
    pub period: String,
    /// The map of all time.
    pub total: String,
}

/// How large the maps become, and how long they last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CensusLimits {
    /// How many fields the map of a period has at most, besides [`OTHER`].
    pub period_max: u64,
    /// How many fields the map of all time has at most, besides [`OTHER`].
    pub total_max: u64,
    /// After so long the map of all time begins anew; `None`: never. Counts from when the map is
    /// made; a map that was there before keeps the expiry that it has.
    pub total_lasts: Option<Duration>,
}

/// One instance's part in counting.
///
/// # Examples
///
/// ```no_run
/// # async fn example(connection: tidegate_redis::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tidegate_redis::{CountBatch, Census, CensusLimits, CensusNames, Closing};
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
/// if let Closing::Mine { token } = census.close(period, lease).await? {
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

    /// Adds a batch to both maps. After an error it is to be called again with the same batch, at
    /// once or later, until it works or the batch is given up: what has been added already is not
    /// added twice, even if nobody knows whether it was. If it is dropped half way, the same holds.
    ///
    /// What is in doubt for longer than eight minutes, or when a later batch is sent first, is left
    /// so ([`MapPlacement::doubtful`]): it may have been counted, and is never counted twice.
    ///
    /// New names get a field only while the map has less than its limit, and names whose field holds
    /// no number (or one too large to be added to) keep it as it is: these count in [`OTHER`]. A map
    /// that is no hash is an error, which names the key. If one map fails, the other is added to all
    /// the same; the first error is told.
    pub async fn add(&mut self, batch: &mut CountBatch) -> Result<BatchPlacement, CallError> {
        let CountBatch {
            counts,
            period,
            total,
        } = batch;
        // Side by side: whoever is killed on the way has most likely sent both, or neither.
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

    /// The `n` largest counts of a map, largest first, without [`OTHER`] and what is no number. A
    /// map that changes meanwhile is told as it was at one moment or another of the reading.
    pub async fn top(&self, map: CensusMap, n: usize) -> Result<Vec<(Vec<u8>, u64)>, CallError> {
        top::top(&self.connection, self.key(map), n).await
    }

    /// What a map counts for `names`, in their order; 0 for whom it has no number.
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
    /// Who gets it reads the map ([`Census::scan_closing`]), does something about it that may be done
    /// twice, and tells so ([`Census::finish`]) before `lease` is over. An instance that asks again
    /// although it has it, having lost the answer or failed half way, gets it again under a new
    /// token; the old one is worth nothing from then on.
    ///
    /// A period in which nothing was counted just ends. The first begins with the first call.
    pub async fn close(&mut self, period: Duration, lease: Duration) -> Result<Closing, CallError> {
        self.periods.close(&self.connection, period, lease).await
    }

    /// Reads the map that is being closed; tells how much was counted in it, [`OTHER`] included.
    ///
    /// `visit` gets every name and its count, but for [`OTHER`] and fields that hold no number. It
    /// may get them more than once: if servers change meanwhile, all is read again. The sum counts
    /// each once. The map is nobody's to change; who does makes it be read again, and after three
    /// times in vain that is an error.
    pub async fn scan_closing(
        &self,
        visit: impl FnMut(&[u8], u64) + Send,
    ) -> Result<u64, CallError> {
        self.periods.scan(&self.connection, visit).await
    }

    /// Ends a closing: the map goes, and the figures tell of it. `false`, and nothing happens, if it
    /// is not this token's any more: somebody else has taken it over. May be called again.
    pub async fn finish(&self, token: &ClosingToken, counted: u64) -> Result<bool, CallError> {
        let ended = self.periods.finish(&self.connection, token, counted);
        ended.await
    }

    /// What all instances together have closed and counted.
    pub async fn figures(&self) -> Result<CensusFigures, CallError> {
        self.periods.figures(&self.connection).await
    }
}

/// A name for an instance that no other has.
fn instance_id() -> String {
    format!("{:016x}{:016x}", random(), random())
}
