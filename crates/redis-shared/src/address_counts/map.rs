//! One map of counts and its periods, as core names them.

use super::closing::{ClosingToken, PeriodClose, Periods};
use super::instance_id;
use super::tally::{AddressCounts, BatchProgress};
use crate::failure::store_error;
use tidegate_core::shared_state::{
    AddedCounts, CountMap, PeriodState, PeriodTerms, SharedCounts, StateFuture,
};
use tidegate_redis_client::Connection;

/// One instance's part in a map of counts.
#[derive(Debug)]
pub(crate) struct MapCounts {
    connection: Connection,
    tally: AddressCounts,
    /// The progress of the counts that are being added.
    progress: BatchProgress,
    periods: Periods,
    /// The closing that is ours, and the sum that was counted in the period.
    closing: Option<(ClosingToken, u64)>,
}

impl MapCounts {
    pub(crate) fn new(connection: Connection, map: &CountMap) -> Self {
        let (key, id) = (map.name.as_bytes(), instance_id());
        Self {
            connection,
            tally: AddressCounts::new(key, &id, map.names_max, map.lasts),
            progress: BatchProgress::default(),
            periods: Periods::new(key, id),
            closing: None,
        }
    }
}

impl SharedCounts for MapCounts {
    fn add<'a>(&'a mut self, counts: &'a [(Vec<u8>, u64)]) -> StateFuture<'a, AddedCounts> {
        Box::pin(async move {
            let Self {
                connection,
                tally,
                progress,
                ..
            } = self;
            let sent = tally.send(connection, counts, progress).await;
            sent.map_err(store_error)?;
            let landed = std::mem::take(progress).landed();
            Ok(AddedCounts {
                counted: landed.own.saturating_add(landed.other),
                doubtful: landed.doubtful,
            })
        })
    }

    fn close(&mut self, terms: PeriodTerms) -> StateFuture<'_, PeriodState> {
        Box::pin(async move {
            let closing = self
                .periods
                .close(&self.connection, terms.period, terms.lease);
            let token = match closing.await.map_err(store_error)? {
                PeriodClose::NotDue { wait } => return Ok(PeriodState::Running { wait }),
                PeriodClose::Busy => return Ok(PeriodState::Busy),
                PeriodClose::Mine { token } => token,
            };
            let mut over = Vec::new();
            let counted = self.periods.scan(&self.connection, |name, count| {
                if count >= terms.threshold {
                    over.push((name.to_vec(), count));
                }
            });
            let counted = counted.await.map_err(store_error)?;
            self.closing = Some((token, counted));
            Ok(PeriodState::Closing { over })
        })
    }

    fn finish(&mut self) -> StateFuture<'_, bool> {
        Box::pin(async {
            let Some((token, counted)) = &self.closing else {
                return Ok(false);
            };
            let finish = self.periods.finish(&self.connection, token, *counted);
            finish.await.map_err(store_error)
        })
    }
}
