//! The end of a period: one instance gets the map, or takes it over from one that is gone.

use super::OTHER;
use crate::foreign_keys;
use crate::same_slot::key_in_same_slot;
use crate::sets::{ScanStep, ScanVerb, SetScan};
use std::time::Duration;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallError, Connection, NodeChoice, Script};

/// The most times that a map is read while it is closed, until it does not change.
const READINGS_MAX: usize = 3;

/// The result of trying to close a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeriodClose {
    /// The period is not over, or a new one has just begun and the last one counted nothing.
    NotDue {
        /// The time until it is over, by the server's clock.
        wait: Duration,
    },
    /// Another instance works the last period off, and still has time to.
    Busy,
    /// It is for us to work off.
    Mine {
        /// The token for [`Census::finish`](super::Census::finish).
        token: ClosingToken,
    },
}

/// The right to finish a closing, until another instance takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingToken(String);

/// Totals of all instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CensusFigures {
    /// The number of periods that are over and finished.
    pub closed: u64,
    /// The sum of their counts.
    pub counted: u64,
    /// The time that the present period still lasts; zero if it is to be closed; `None` if none has
    /// begun.
    pub due: Option<Duration>,
}

/// The periods, as one instance sees them.
#[derive(Debug)]
pub(super) struct Periods {
    current: Vec<u8>,
    closing: Vec<u8>,
    state: Vec<u8>,
    id: String,
    /// The number of attempts, so that every token differs.
    asked: u64,
    close: Script,
    finish: Script,
    figures: Script,
}

impl Periods {
    pub(super) fn new(current: &[u8], id: String) -> Self {
        Self {
            current: current.to_vec(),
            closing: key_in_same_slot(current, ":closing"),
            state: key_in_same_slot(current, ":period"),
            id,
            asked: 0,
            close: foreign_keys::script("census close", include_str!("close.lua")),
            finish: foreign_keys::script("census finish", include_str!("finish.lua")),
            figures: foreign_keys::script("census figures", include_str!("figures.lua")),
        }
    }

    pub(super) async fn close(
        &mut self,
        connection: &Connection,
        period: Duration,
        lease: Duration,
    ) -> Result<PeriodClose, CallError> {
        self.asked += 1;
        let name = format!("{}/{}", self.id, self.asked);
        let keys = [&self.current, &self.closing, &self.state];
        let (period, lease) = (foreign_keys::millis(period), foreign_keys::millis(lease));
        let args = [&self.id, &name, &period, &lease];
        let reply = connection.evalsha(&self.close, &keys, &args).await?;
        let Value::Int(reply) = reply else {
            return Err(CallError::malformed("unexpected reply: expected a number"));
        };
        match u64::try_from(reply) {
            Ok(wait) => {
                let wait = Duration::from_millis(wait);
                Ok(PeriodClose::NotDue { wait })
            }
            Err(_) if reply == -1 => {
                let token = ClosingToken(name);
                Ok(PeriodClose::Mine { token })
            }
            Err(_) => Ok(PeriodClose::Busy),
        }
    }

    pub(super) async fn scan(
        &self,
        connection: &Connection,
        mut visit: impl FnMut(&[u8], u64) + Send,
    ) -> Result<u64, CallError> {
        for _ in 0..READINGS_MAX {
            let (fields, sum) = self.read(connection, &mut visit).await?;
            // A field that was skipped or returned twice would make the sum wrong.
            if fields == self.size(connection).await? {
                return Ok(sum);
            }
        }
        let key = foreign_keys::shown(&self.closing);
        let detail = format!("{key} changed during every read");
        Err(CallError::malformed(detail))
    }

    /// Returns the number of fields, and the sum of their counts.
    async fn read(
        &self,
        connection: &Connection,
        visit: &mut (impl FnMut(&[u8], u64) + Send),
    ) -> Result<(u64, u64), CallError> {
        let (mut fields, mut sum): (u64, u64) = (0, 0);
        let mut walk = SetScan::new(connection, ScanVerb::Hash, &self.closing);
        loop {
            let found = match walk.next().await? {
                ScanStep::Found(found) => found,
                ScanStep::Again => {
                    (fields, sum) = (0, 0);
                    continue;
                }
                ScanStep::End => return Ok((fields, sum)),
            };
            for pair in found.chunks_exact(2) {
                fields += 1;
                let [name, value] = pair else { continue };
                let Some(count) = foreign_keys::number(value) else {
                    continue;
                };
                sum = sum.saturating_add(count);
                if name != OTHER.as_bytes() {
                    visit(name, count);
                }
            }
        }
    }

    async fn size(&self, connection: &Connection) -> Result<u64, CallError> {
        let mut command = protocol::cmd("HLEN");
        command.arg(self.closing.as_slice());
        let size = connection.command(NodeChoice::Key(&self.closing), &command);
        match size.await? {
            Value::Int(size) => u64::try_from(size).ok(),
            _ => None,
        }
        .ok_or_else(|| CallError::malformed("unexpected reply: expected a count"))
    }

    pub(super) async fn finish(
        &self,
        connection: &Connection,
        token: &ClosingToken,
        counted: u64,
    ) -> Result<bool, CallError> {
        let counted = counted.min(i64::MAX.unsigned_abs()).to_string();
        let keys = [&self.closing, &self.state];
        let args = [&token.0, &counted];
        match connection.evalsha(&self.finish, &keys, &args).await? {
            Value::Int(done) => Ok(done == 1),
            _ => Err(CallError::malformed("unexpected reply: expected a number")),
        }
    }

    pub(super) async fn figures(
        &self,
        connection: &Connection,
    ) -> Result<CensusFigures, CallError> {
        let (keys, args) = ([&self.state], [""; 0]);
        let reply = connection.evalsha(&self.figures, &keys, &args);
        let reply = foreign_keys::strings(reply.await?)?;
        let [closed, counted, due] = reply.as_slice() else {
            return Err(CallError::malformed(
                "unexpected reply: expected three numbers",
            ));
        };
        Ok(CensusFigures {
            closed: foreign_keys::number(closed).unwrap_or_default(),
            counted: foreign_keys::number(counted).unwrap_or_default(),
            due: foreign_keys::number(due).map(Duration::from_millis),
        })
    }
}
