//! A request in a form that can travel: copied from the caller's asks, its keys made.

use smallvec::SmallVec;
use tidegate_core::{LimitMode, Op, Quota};

/// The name of a key in Redis. The usual one lives in place.
pub(crate) type RedisKey = SmallVec<[u8; 64]>;

/// What one caller asks in one step. All its keys lie in one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotAsks {
    /// Distinct.
    pub(crate) keys: SmallVec<[RedisKey; 1]>,
    pub(crate) asks: SmallVec<[OwnedAsk; 1]>,
}

/// [`tidegate_core::Ask`], owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedAsk {
    /// Which of the request's keys.
    pub(crate) key: u8,
    pub(crate) quota: Quota,
    pub(crate) op: RequestOp,
    pub(crate) limit: u16,
    pub(crate) mode: LimitMode,
}

/// What to do with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOp {
    /// An operation of the engine.
    Engine(Op),
    /// Forgets the bucket, whatever is in it. Never in one request with anything else.
    Drop,
    /// Reads the bucket and writes nothing, not even a state that is too far ahead for the quota. Never
    /// in one call with anything else.
    Inspect,
}

impl RequestOp {
    /// The units that are charged if it is carried out.
    pub(crate) fn cost(self) -> u64 {
        match self {
            Self::Engine(op) => op.cost(),
            Self::Drop | Self::Inspect => 0,
        }
    }
}
