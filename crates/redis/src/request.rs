//! A request in a form that can travel: copied from the caller's asks, its keys made.

use smallvec::SmallVec;
use tidegate_core::{LimitMode, Op, Quota};

/// The name of a key in Redis. The usual one lives in place.
pub(crate) type RedisKey = SmallVec<[u8; 64]>;

/// The asks of one caller in one call. All keys are in one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotAsks {
    /// Distinct.
    pub(crate) keys: SmallVec<[RedisKey; 1]>,
    pub(crate) asks: SmallVec<[OwnedAsk; 1]>,
}

/// [`tidegate_core::Ask`], owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedAsk {
    /// The index of its key in the request.
    pub(crate) key: u8,
    pub(crate) quota: Quota,
    pub(crate) op: RequestOp,
    pub(crate) limit: u16,
    pub(crate) mode: LimitMode,
}

/// An operation on a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOp {
    /// An operation of the engine.
    Engine(Op),
    /// Deletes the bucket, regardless of its content. Never in one request with anything else.
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

    /// Returns true if it is charged even where it refuses itself.
    pub(crate) fn is_forced(self) -> bool {
        matches!(self, Self::Engine(op) if op.is_forced())
    }
}
