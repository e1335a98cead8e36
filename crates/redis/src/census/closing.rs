//! The end of a period: one instance gets the map, or takes it over from one that is gone.

use super::OTHER;
use crate::beside::beside;
use crate::connection::{Connection, NodeChoice};
use crate::error::CallError;
use crate::script::Script;
use crate::sets::{ScanStep, ScanVerb, SetScan};
use crate::typed;
use redis::Value;
use std::time::Duration;

/// How often a map that is being closed is read until it stays as it is.
const READINGS_MAX: usize = 3;

/// What became of asking for the end of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The period goes on, or a new one has just begun and nothing was counted in the last.
    NotDue {
        /// Until when, by the server's clock.
        wait: Duration,
    },
    /// Another instance works the last period off, and still has time to.
    Busy,
    /// It is for us to work off.
    Mine {
        /// What [`Census::finish`](super::Census::finish) wants to see.
        token: ClosingToken,
    },
}

/// Who has it may finish a closing, unless somebody else has taken it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingToken(String);

/// What all instances together have closed and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CensusFigures {
    /// How many periods are over and worked off.
    pub closed: u64,
    /// How much was counted in them.
    pub counted: u64,
    /// How long the present period still lasts; zero if it is to be closed; `None` if none has begun.
    pub due: Option<Duration>,
}

/// The periods, as one instance sees them.
#[derive(Debug)]
pub(super) struct Periods {
    current: Vec<u8>,
    closing: Vec<u8>,
    state: Vec<u8>,
    id: String,
    /// How often we asked: every token is another.
    asked: u64,
    close: Script,
    finish: Script,
    figures: Script,
}

impl Periods {
    pub(super) fn new(current: &[u8], id: String) -> Self {
        Self {
            current: current.to_vec(),
            closing: beside(current, ":closing"),
            state: beside(current, ":period"),
            id,
            asked: 0,
            close: typed::script("census close", include_str!("close.lua")),
            finish: typed::script("census finish", include_str!("finish.lua")),
            figures: typed::script("census figures", include_str!("figures.lua")),
        }
    }

    pub(super) async fn close(
        &mut self,
        connection: &Connection,
        period: Duration,
        lease: Duration,
    ) -> Result<Closing, CallError> {
        self.asked += 1;
        let name = format!("{}/{}", self.id, self.asked);
        let keys = [&self.current, &self.closing, &self.state];
        let (period, lease) = (typed::millis(period), typed::millis(lease));
        let args = [&self.id, &name, &period, &lease];
        let reply = connection.evalsha(&self.close, &keys, &args).await?;
        let Value::Int(reply) = reply else {
            return Err(CallError::malformed("a number was expected"));
        };
        match u64::try_from(reply) {
            Ok(wait) => {
                let wait = Duration::from_millis(wait);
                Ok(Closing::NotDue { wait })
            }
            Err(_) if reply == -1 => {
                let token = ClosingToken(name);
                Ok(Closing::Mine { token })
            }
            Err(_) => Ok(Closing::Busy),
        }
    }

    pub(super) async fn scan(
        &self,
        connection: &Connection,
        mut visit: impl FnMut(&[u8], u64) + Send,
    ) -> Result<u64, CallError> {
        for _ in 0..READINGS_MAX {
            let (fields, sum) = self.read(connection, &mut visit).await?;
            // A field that was passed over or told twice would make the sum a lie.
            if fields == self.size(connection).await? {
                return Ok(sum);
            }
        }
        let key = typed::shown(&self.closing);
        let detail = format!("{key} was changed by somebody each time that it was read");
        Err(CallError::malformed(detail))
    }

    /// How many fields were seen, and the sum of their counts.
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
                let Some(count) = typed::number(value) else {
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
        let mut command = redis::cmd("HLEN");
        command.arg(self.closing.as_slice());
        let size = connection.command(NodeChoice::Key(&self.closing), &command);
        match size.await? {
            Value::Int(size) => u64::try_from(size).ok(),
            _ => None,
        }
        .ok_or_else(|| CallError::malformed("a count was expected"))
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
            _ => Err(CallError::malformed("a number was expected")),
        }
    }

    pub(super) async fn figures(
        &self,
        connection: &Connection,
    ) -> Result<CensusFigures, CallError> {
        let (keys, args) = ([&self.state], [""; 0]);
        let reply = connection.evalsha(&self.figures, &keys, &args);
        let reply = typed::strings(reply.await?)?;
        let [closed, counted, due] = reply.as_slice() else {
            return Err(CallError::malformed("three figures were expected"));
        };
        Ok(CensusFigures {
            closed: typed::number(closed).unwrap_or_default(),
            counted: typed::number(counted).unwrap_or_default(),
            due: typed::number(due).map(Duration::from_millis),
        })
    }
}
