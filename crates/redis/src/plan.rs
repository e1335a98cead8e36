//! What a request asks of which slot.

use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use crate::shared::RedisInner;
use smallvec::SmallVec;
use tidegate_core::{Ask, Op, StoreError};

/// The asks of a request whose keys lie in one slot.
#[derive(Debug)]
pub(crate) struct SlotRequest {
    pub(crate) slot: u16,
    pub(crate) request: SlotAsks,
    /// Which ask of the caller's each of the request's asks is.
    pub(crate) places: SmallVec<[u16; 4]>,
}

/// The groups of a request; nearly always one.
pub(crate) type Groups = SmallVec<[SlotRequest; 1]>;

/// A request numbers its keys in a byte.
const KEYS_MAX: usize = 255;

/// Where an ask's bucket is: the group, and which of its keys.
type GroupKeyIndex = (usize, u8);

/// Finds out which slots `asks` lie in. Asks of one bucket stay together and in order.
pub(crate) fn groups(shared: &RedisInner, asks: &[Ask<'_>]) -> Result<Groups, StoreError> {
    let mut groups = Groups::new();
    let mut last: Option<(&Ask<'_>, GroupKeyIndex)> = None;
    let shares_key = |ask: &Ask<'_>, other: &Ask<'_>| {
        ask.bucket == other.bucket
            && (shared.naming.is_packed() || ask.quota.id() == other.quota.id())
    };
    for (nth, ask) in (0..).zip(asks) {
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
            "what is to be returned lies in several slots of the Cluster, which no one step spans",
        ));
    }
    Ok(groups)
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
        return Err(StoreError::permanent("there is no such group"));
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
            "a request met more than {KEYS_MAX} buckets; Redis is asked for no more at once"
        ))),
    }
}
