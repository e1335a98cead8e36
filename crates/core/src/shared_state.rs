//! State that instances share in addition to buckets: sets, counts, the roll of instances, a secret.

use crate::StoreError;
use std::fmt::Debug;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// A call that may wait. No request waits for one, so a box is cheap enough.
pub type StateFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// State that the instances of a store share in addition to its buckets.
///
/// Every capability is optional. `None` means that this store lacks it; the limiter logs a warning where
/// its configuration needs it.
pub trait SharedState: Debug + Send + Sync {
    /// Named sets: the lists of guards, and bans.
    fn sets(&self) -> Option<&dyn SharedSets> {
        None
    }

    /// Opens a map of counts by name, to which all instances add.
    fn counts(&self, map: &CountMap) -> Option<Box<dyn SharedCounts>> {
        let _ = map;
        None
    }

    /// Returns the instances that share the store, if this one is listed among them.
    fn instances(&self) -> Option<&dyn SharedInstances> {
        None
    }

    /// Returns a secret that all instances have and no client does: the one that is kept, else
    /// `proposal`, which is random and kept from now on. Kept for at least a day after the last call.
    fn secret(&self, proposal: [u8; 32]) -> Option<StateFuture<'_, [u8; 32]>> {
        let _ = proposal;
        None
    }
}

/// Members of a set.
pub type SetMembers = Vec<Vec<u8>>;

/// Named sets, some of whose members leave at a time. People may write to them as well.
pub trait SharedSets: Debug + Send + Sync {
    /// Waits until it is known whether the sets can be reached.
    fn ready(&self) -> StateFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns all members within `time`; one may be named more than once. More than `max` are an error.
    fn read<'a>(&'a self, set: &'a str, max: usize, time: Duration) -> StateFuture<'a, SetMembers>;

    /// Adds members for `length`, or permanently. Returns the new ones. A member that has an end keeps
    /// the later one; one without an end stays permanently.
    fn add<'a>(
        &'a self,
        set: &'a str,
        members: &'a [&'a [u8]],
        length: Option<Duration>,
    ) -> StateFuture<'a, SetMembers>;

    /// Removes the members whose time is over, and returns them. If several instances do so at once,
    /// each member is returned to one of them.
    fn expire<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers>;

    /// Also forgets the ends of members that people removed, so that they have none when they are added
    /// again. It may take a step for each end.
    fn expire_and_tidy<'a>(&'a self, set: &'a str) -> StateFuture<'a, SetMembers> {
        self.expire(set)
    }

    /// Returns the members that leave, and how long each still stays. As [`read`](Self::read).
    fn ends<'a>(
        &'a self,
        set: &'a str,
        max: usize,
        time: Duration,
    ) -> StateFuture<'a, Vec<(Vec<u8>, Duration)>>;
}

/// A map of counts, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountMap {
    /// Its name.
    pub name: String,
    /// The most names that are counted separately; others are counted together.
    pub names_max: u64,
    /// The time after which it starts from zero; `None`: never.
    pub lasts: Option<Duration>,
}

/// One instance's part in a map of counts.
pub trait SharedCounts: Debug + Send {
    /// Adds counts. After an error it is called with the same counts until it succeeds: they are counted
    /// once, even if the result of a call is unknown.
    fn add<'a>(&'a mut self, counts: &'a [(Vec<u8>, u64)]) -> StateFuture<'a, AddedCounts>;

    /// Closes the period if it is over, or takes that over from an instance that has not finished within
    /// its lease.
    fn close(&mut self, terms: PeriodTerms) -> StateFuture<'_, PeriodState>;

    /// Ends the closing that [`close`](Self::close) returned. Returns false if another instance has taken
    /// it over.
    fn finish(&mut self) -> StateFuture<'_, bool>;
}

/// The result of adding counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddedCounts {
    /// The sum that was counted.
    pub counted: u64,
    /// Sum of the counts whose result is unknown.
    pub doubtful: u64,
}

/// The terms by which periods are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodTerms {
    /// The length of a period.
    pub period: Duration,
    /// The time that an instance has to close one.
    pub lease: Duration,
    /// The count at which a name is returned.
    pub threshold: u64,
}

/// The state of a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeriodState {
    /// It is not over.
    Running {
        /// Length of the wait.
        wait: Duration,
    },
    /// Another instance closes it.
    Busy,
    /// It is over, and this instance closes it: acts on `over`, and then calls
    /// [`finish`](SharedCounts::finish).
    Closing {
        /// The names at or over the threshold, with their counts. One may come more than once.
        over: Vec<(Vec<u8>, u64)>,
    },
}

/// The instances that share a store, this one among them.
pub trait SharedInstances: Debug + Send + Sync {
    /// Returns the name of this instance.
    fn id(&self) -> &str;

    /// Returns the number of live instances, as it changes; 0 while it is unknown.
    fn count(&self) -> Arc<AtomicU32>;

    /// Announces the configuration that this instance serves from now on, its program's version, and the release of
    /// its time zones.
    fn announce(&self, version: &str, program: &str, zones: &str);

    /// Returns the last known roll of instances; `None` if it is too old.
    fn last_roll(&self) -> Option<Roll>;

    /// Returns the present roll of instances, or the last known one if that takes longer than
    /// `patience`.
    fn roll(&self, patience: Duration) -> StateFuture<'_, Option<Roll>>;

    /// Takes this instance off the list.
    fn leave(&self) -> StateFuture<'_, ()>;
}

/// The instances that share a store: this one first, and then by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roll {
    /// Each of them, a thousand at most.
    pub instances: Vec<Instance>,
}

/// An instance that has announced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, which is random.
    pub name: String,
    /// True for this instance.
    pub is_this: bool,
    /// Time since it last announced itself, by the store's clock.
    pub heard: Duration,
    /// The configuration that it serves; `None` if it has announced none.
    pub serves: Option<InstanceConfig>,
}

/// The configuration that an instance serves, as it has announced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceConfig {
    /// The first 16 characters of its version, which is the same wherever the same is served.
    pub version: String,
    /// The version of the program.
    pub program: String,
    /// The release of its time zones; `None` if an earlier version of the program announced nothing of them.
    pub zones: Option<String>,
    /// The time since it has served that, by the store's clock.
    pub since: Duration,
}
