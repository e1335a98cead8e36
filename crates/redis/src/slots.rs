//! The asks of a request by slot.

use crate::dispatch::RedisInner;
use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use smallvec::SmallVec;
use tidegate_core::{Ask, Op, StoreError};

/// The asks of a request whose keys are in one slot.
#[derive(Debug)]
pub(crate) struct SlotRequest {
    pub(crate) slot: u16,
    pub(crate) request: SlotAsks,
    /// The number of each ask among those of the caller.
    pub(crate) places: SmallVec<[u16; 4]>,
}

/// The groups of a request; nearly always one.
pub(crate) type Groups = SmallVec<[SlotRequest; 1]>;

/// A request numbers its keys in a byte.
const KEYS_MAX: usize = 255;

/// The location of an ask's bucket: the group, and the key in it.
type GroupKeyIndex = (usize, u8);

/// Groups `asks` by slot. Asks on one bucket stay together and in order.
pub(crate) fn groups(shared: &RedisInner, asks: &[Ask<'_>]) -> Result<Groups, StoreError> {
    let mut groups = Groups::new();
    let mut last: Option<(&Ask<'_>, GroupKeyIndex)> = None;
    let shares_key = |ask: &Ask<'_>, other: &Ask<'_>| {
        ask.bucket == other.bucket
            && (shared.naming.is_packed() || ask.quota.id() == other.quota.id())
    };
    for (nth, ask) in (0..).zip(asks) {
        if needs_permits(ask) {
            return Err(StoreError::no_permits());
        }
        let (at, key) = match last {
            // The bands of a limit come one after the other, and share their bucket.
            Some((other, place)) if shares_key(ask, other) => place,
            _ => {
                let key = shared.naming.key(ask.bucket, ask.quota);
                place(&mut groups, shared.slot(&key), key)?
            }
        };
        last = Some((ask, (at, key)));
        if let Some(group) = groups.get_mut(at) {
            group.request.asks.push(OwnedAsk {
                key,
                quota: *ask.quota,
                op: RequestOp::Engine(ask.op),
                limit: ask.limit,
                mode: ask.mode,
            });
            group.places.push(nth);
        }
    }
    if groups.len() > 1 && asks.iter().any(|ask| matches!(ask.op, Op::Return { .. })) {
        return Err(StoreError::permanent(
            "the charges to refund are in several Cluster slots",
        ));
    }
    Ok(groups)
}

/// Returns true if an ask holds, prolongs or releases permits, which no script does.
fn needs_permits(ask: &Ask<'_>) -> bool {
    let is_timed = matches!(ask.op, Op::Acquire(_) | Op::Renew { .. } | Op::Release(_));
    is_timed || ask.quota.algorithm().is_concurrent()
}

/// Finds the place of a key, or makes one.
fn place(groups: &mut Groups, slot: u16, key: RedisKey) -> Result<GroupKeyIndex, StoreError> {
    let at = match groups.iter().position(|group| group.slot == slot) {
        Some(at) => at,
        None => {
            groups.push(SlotRequest {
                slot,
                request: SlotAsks::default(),
                places: SmallVec::new(),
            });
            groups.len().saturating_sub(1)
        }
    };
    let Some(group) = groups.get_mut(at) else {
        return Err(StoreError::permanent("unknown group"));
    };
    let keys = &mut group.request.keys;
    let nth = match keys.iter().position(|other| *other == key) {
        Some(nth) => nth,
        None => {
            keys.push(key);
            keys.len().saturating_sub(1)
        }
    };
    match u8::try_from(nth) {
        Ok(nth) if usize::from(nth) < KEYS_MAX => Ok((at, nth)),
        _ => Err(StoreError::permanent(format!(
            "a request matches more than {KEYS_MAX} buckets, the maximum of one call"
        ))),
    }
}
