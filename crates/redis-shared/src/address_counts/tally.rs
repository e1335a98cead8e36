//! One of the maps, to which batches are added: each piece of a batch once.
//!
//! A piece has a number, and a marker next to the map holds the highest number that this instance has
//! added. So a piece that is sent again can be distinguished from a new one as long as pieces come in order and
//! the marker exists. A piece that may have been added and is past that is dropped.

use super::batch::{MapPlacement, sum};
use crate::foreign_keys;
use crate::same_slot::key_in_same_slot;
use std::time::Duration;
use tidegate_redis_client::protocol::Value;
use tidegate_redis_client::{CallEffect, CallError, Connection, Script};
use tokio::time::Instant;

/// The number of counts added by one call: a few milliseconds of the server's time.
const PIECE: usize = 1_000;

/// A piece that was first sent so long ago is not sent again. The marker lasts for ten minutes; the
/// rest is for calls that take their time.
const DOUBT_MAX: Duration = Duration::from_secs(480);

/// The most that Redis can count at once.
const COUNT_MAX: u64 = i64::MAX.unsigned_abs();

/// The progress of a batch in one map.
#[derive(Debug, Default)]
pub(super) struct BatchProgress {
    /// The number of finished pieces.
    done: usize,
    /// The next piece, if it may have been added.
    sent: Option<SentBatch>,
    landed: MapPlacement,
}

#[derive(Clone, Copy, Debug)]
struct SentBatch {
    number: u64,
    first: Instant,
}

impl BatchProgress {
    pub(super) fn landed(&self) -> MapPlacement {
        self.landed
    }

    /// Moves on to the next piece. This one is counted, except for the doubtful part of `landed`.
    fn pass(&mut self, landed: MapPlacement) {
        let add = u64::saturating_add;
        self.landed = MapPlacement {
            own: add(self.landed.own, landed.own),
            other: add(self.landed.other, landed.other),
            doubtful: add(self.landed.doubtful, landed.doubtful),
        };
        self.done += 1;
        self.sent = None;
    }
}

/// A map.
#[derive(Debug)]
pub(super) struct AddressCounts {
    /// The map, and our marker.
    keys: [Vec<u8>; 2],
    max: String,
    lasts: String,
    script: Script,
    /// The number of the piece that was sent last.
    newest: u64,
}

impl AddressCounts {
    pub(super) fn new(key: &[u8], id: &str, max: u64, lasts: Option<Duration>) -> Self {
        let marker = key_in_same_slot(key, &format!(":batch:{id}"));
        Self {
            keys: [key.to_vec(), marker],
            max: max.to_string(),
            lasts: foreign_keys::millis(lasts.unwrap_or_default()),
            script: foreign_keys::script("census add", include_str!("add.lua")),
            newest: 0,
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        let [map, _] = &self.keys;
        map
    }

    /// Adds the rest of a batch.
    pub(super) async fn send(
        &mut self,
        connection: &Connection,
        counts: &[(Vec<u8>, u64)],
        progress: &mut BatchProgress,
    ) -> Result<(), CallError> {
        while let Some(piece) = counts.chunks(PIECE).nth(progress.done) {
            let all = sum(piece);
            if progress.sent.is_some_and(|sent| self.is_lost(sent)) {
                progress.pass(MapPlacement {
                    doubtful: all,
                    ..MapPlacement::default()
                });
                continue;
            }
            let is_first = progress.sent.is_none();
            let sent = *progress.sent.get_or_insert_with(|| {
                self.newest += 1;
                SentBatch {
                    number: self.newest,
                    first: Instant::now(),
                }
            });
            match self.call(connection, sent.number, piece).await {
                Ok(other) => progress.pass(MapPlacement {
                    own: all.saturating_sub(other),
                    other: other.min(all),
                    doubtful: 0,
                }),
                Err(error) => {
                    if is_first && is_without_effect(&error) {
                        progress.sent = None;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Returns true if the marker cannot show any more whether a piece was added.
    fn is_lost(&self, sent: SentBatch) -> bool {
        sent.number != self.newest || sent.first.elapsed() >= DOUBT_MAX
    }

    /// Adds a piece. Returns the sum that was counted in `other`.
    async fn call(
        &self,
        connection: &Connection,
        number: u64,
        piece: &[(Vec<u8>, u64)],
    ) -> Result<u64, CallError> {
        let number = number.to_string();
        let texts: Vec<String> = piece
            .iter()
            .map(|(_, count)| count.min(&COUNT_MAX).to_string())
            .collect();
        let mut args = vec![
            number.as_bytes(),
            self.max.as_bytes(),
            self.lasts.as_bytes(),
        ];
        for ((name, _), count) in piece.iter().zip(&texts) {
            args.push(name);
            args.push(count.as_bytes());
        }
        let reply = connection.evalsha(&self.script, &self.keys, &args).await?;
        match &reply {
            Value::BulkString(other) => foreign_keys::number(other),
            _ => None,
        }
        .ok_or_else(|| CallError::malformed("unexpected reply: expected the count of `other`"))
    }
}

/// The script looks at types before it writes.
fn is_without_effect(error: &CallError) -> bool {
    error.class() == CallEffect::NotExecuted || error.code() == Some(foreign_keys::WRONG_TYPE)
}
