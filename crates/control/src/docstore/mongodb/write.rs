//! Changes to the document: one write each, and never made twice.
//!
//! If the driver retries automatically, which it does for replica sets unless the URL disables it, both
//! attempts have one number, and the server makes the change once. If the response is lost, a read shows
//! whether the change was made.

use super::texts::{CHANGE, ID, MongoUpdate, VERSION, version};
use super::{MongoDocumentStore, shown};
use crate::docstore::{DocumentChange, Revision, WriteError};
use mongodb::bson::{Bson, doc};
use mongodb::error::{Error, ErrorKind, RETRYABLE_WRITE_ERROR, WriteFailure};
use tidegate::{Clock, SystemClock};
use tokio::time::timeout;

/// The error code for a document whose id exists already.
const DUPLICATE: i32 = 11_000;

/// The error codes of a server that was interrupted, or is no longer the primary: it may have made the
/// change before.
const INTERRUPTED: [i32; 15] = [
    6, 7, 50, 64, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_601, 11_602, 13_435, 13_436,
];

/// The reason why a change is not confirmed.
enum MongoWriteError {
    /// The document no longer has the expected version.
    Conflict,
    /// The change was not made.
    Refused(String),
    /// The result is unknown.
    Lost(String),
}

impl MongoDocumentStore {
    pub(super) async fn change(
        &self,
        expected: &Revision,
        changes: &[DocumentChange],
    ) -> Result<Revision, WriteError> {
        let stored = self.stored().await.map_err(|it| WriteError::Away(it.0))?;
        let is_there = stored.is_some();
        let now = i64::try_from(SystemClock::new().now().as_micros()).unwrap_or(i64::MAX);
        let planned = stored.unwrap_or_default().with(expected, changes, now);
        let planned = planned.map_err(|why| WriteError::Away(self.wrong(&why).0))?;
        let planned = planned.ok_or(WriteError::Conflict)?;
        let asked = timeout(self.time_max, self.ask_for(&planned, is_there)).await;
        match asked.unwrap_or_else(|_| Err(MongoWriteError::Lost(self.too_slow()))) {
            Ok(()) => Ok(Revision(planned.version.to_string())),
            Err(MongoWriteError::Conflict) => Err(WriteError::Conflict),
            Err(MongoWriteError::Refused(why)) => Err(WriteError::Away(why)),
            Err(MongoWriteError::Lost(why)) => self.look_back(&planned, &why).await,
        }
    }

    async fn ask_for(&self, planned: &MongoUpdate, is_there: bool) -> Result<(), MongoWriteError> {
        let collection = self.collection().await.map_err(MongoWriteError::Refused)?;
        if !is_there {
            let mut first = doc! { "_id": ID };
            first.extend(planned.set.clone());
            return match collection.insert_one(first).await {
                Ok(_) => Ok(()),
                Err(error) => Err(failed(error)),
            };
        }
        let set = doc! { "$set": planned.set.clone() };
        match collection.update_one(planned.filter.clone(), set).await {
            Ok(done) if done.matched_count == 1 => Ok(()),
            Ok(_) => Err(MongoWriteError::Conflict),
            Err(error) => Err(failed(error)),
        }
    }

    /// Checks whether a change was made whose response was lost: the change is not sent twice.
    async fn look_back(&self, planned: &MongoUpdate, why: &str) -> Result<Revision, WriteError> {
        let found = self.find(&[VERSION, CHANGE]).await.ok().flatten();
        let is_made = found.is_some_and(|it| {
            version(&it) == Ok(planned.version)
                && it.get(CHANGE) == Some(&Bson::ObjectId(planned.change))
        });
        if is_made {
            return Ok(Revision(planned.version.to_string()));
        }
        // The change may still be made later.
        let message = format!("it is not known whether it was changed: {why}");
        Err(WriteError::Doubtful(message))
    }
}

fn failed(error: Error) -> MongoWriteError {
    let is_lost = match &*error.kind {
        ErrorKind::Write(WriteFailure::WriteError(wrong)) if wrong.code == DUPLICATE => {
            return MongoWriteError::Conflict;
        }
        // No server was reached, or the server rejected the change.
        ErrorKind::Write(WriteFailure::WriteError(_))
        | ErrorKind::ServerSelection { .. }
        | ErrorKind::Authentication { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::InvalidTlsConfig { .. }
        | ErrorKind::InvalidArgument { .. }
        | ErrorKind::IncompatibleServer { .. } => false,
        ErrorKind::Command(wrong) => {
            error.contains_label(RETRYABLE_WRITE_ERROR) || INTERRUPTED.contains(&wrong.code)
        }
        _ => true,
    };
    let why = shown(error);
    if is_lost {
        MongoWriteError::Lost(why)
    } else {
        MongoWriteError::Refused(why)
    }
}
