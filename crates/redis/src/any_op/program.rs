//! The arguments of the script; `program.lua` describes the form.
//!
//! Each key, each quota and each *shape* of requests is sent once. The shape is all of a request except
//! its keys. The rest of a request is two bytes for each of its keys, and for equal requests in a row a
//! count.

use super::row::{AskSlot, is_simple, push_count, push_quota, push_shape};
use super::runs::Shapes;
use super::takes_only;
use crate::layout::{self, Form, OpenKey};
use crate::record::{self, CorruptRecord};
use crate::request::{RedisKey, SlotAsks};
use crate::script::record_id;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use tidegate_core::{Bucket, Quota, Timestamp};
use tidegate_redis_client::protocol::Value;

/// One call of the general script.
#[derive(Debug)]
pub(crate) struct ScriptCall {
    /// Distinct.
    pub(crate) keys: Vec<RedisKey>,
    pub(crate) program: Vec<u8>,
    /// The buckets that it means.
    pub(super) places: Vec<BandRef>,
    /// The place and the quota of each ask, of all requests in a row.
    pub(super) asks: Vec<(u16, u16)>,
    pub(crate) quotas: Vec<Quota>,
    /// True if one bucket is used under several quotas, as happens when a policy changes.
    pub(super) switches: bool,
    /// True if its keys are those of the open layout.
    pub(super) is_open: bool,
}

/// A bucket: one band under one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandRef {
    pub(super) key: u16,
    /// The first quota that it is used under.
    pub(super) quota: u16,
}

/// Puts requests into one call, which decides them in order. All together must not have more than
/// 65,535 keys, asks or quotas.
pub(crate) fn encode(requests: &[&SlotAsks]) -> ScriptCall {
    ProgramDraft::default().fill(requests)
}

/// [`encode`] for the open layout.
pub(crate) fn encode_open(requests: &[&SlotAsks]) -> ScriptCall {
    let draft = ProgramDraft {
        is_open: true,
        ..ProgramDraft::default()
    };
    draft.fill(requests)
}

impl ScriptCall {
    /// Returns the form of a key's buckets.
    pub(super) fn form(&self, key: u16) -> Form {
        match self.keys.get(usize::from(key)) {
            Some(key) if self.is_open => OpenKey::read(key).form,
            _ => Form::Packed,
        }
    }

    /// Returns the state of `quota` in the value of a key, if it still matters at `now`.
    pub(super) fn find_in(
        &self,
        key: u16,
        value: &Value,
        quota: &Quota,
        now: Timestamp,
    ) -> Result<Option<Bucket>, CorruptRecord> {
        match self.keys.get(usize::from(key)) {
            Some(key) if self.is_open => layout::find_in(key, value, quota, now),
            _ => record::find_in(value, quota, now),
        }
    }
}

/// The quotas under a key, by their numbers.
type QuotaSet = SmallVec<[u16; 4]>;

/// A call under construction. Keys, quotas and shapes get numbers as they appear.
#[derive(Default)]
struct ProgramDraft {
    is_open: bool,
    keys: Vec<RedisKey>,
    /// From a key to its number.
    numbers: HashTable<u16>,
    hasher: RandomState,
    quotas: Vec<Quota>,
    /// The quotas of each key: the first quota of each bucket, and the latest.
    classes: Vec<QuotaSet>,
    latest: Vec<QuotaSet>,
    /// The keys of all requests in a row, then the spots of all asks in a row.
    request_keys: Vec<u16>,
    spots: Vec<AskSlot>,
    /// The key of each spot.
    spot_keys: Vec<u16>,
}

impl ProgramDraft {
    /// Adds all requests and returns the call.
    fn fill(mut self, requests: &[&SlotAsks]) -> ScriptCall {
        for request in requests {
            self.place(request);
        }
        self.finish(requests)
    }

    /// Returns true if a key holds one state, regardless of the quota.
    fn is_single(&self, key: u16) -> bool {
        let key = self.keys.get(usize::from(key));
        key.is_some_and(|key| OpenKey::read(key).form != Form::Packed)
    }

    /// Gives every ask of a request its place.
    fn place(&mut self, request: &SlotAsks) {
        let first = self.request_keys.len();
        for key in &request.keys {
            let number = self.number(key);
            self.request_keys.push(number);
        }
        for ask in &request.asks {
            let key = first.saturating_add(usize::from(ask.key));
            let key = self.request_keys.get(key).copied().unwrap_or(0);
            let quota = self.quota(&ask.quota);
            let spot = self.spot(key, quota);
            self.spots.push(spot);
            self.spot_keys.push(key);
        }
    }

    /// Returns the number of a key, which may be new.
    fn number(&mut self, key: &RedisKey) -> u16 {
        let hash = self.hasher.hash_one(key.as_slice());
        let keys = &mut self.keys;
        let is_it = |number: &u16| keys.get(usize::from(*number)) == Some(key);
        if let Some(number) = self.numbers.find(hash, is_it) {
            return *number;
        }
        let number = u16::try_from(keys.len()).unwrap_or(u16::MAX);
        keys.push(key.clone());
        let hasher = &self.hasher;
        self.numbers.insert_unique(hash, number, |number| {
            let key = keys.get(usize::from(*number));
            key.map_or(0, |key| hasher.hash_one(key.as_slice()))
        });
        self.classes.push(QuotaSet::new());
        self.latest.push(QuotaSet::new());
        number
    }

    /// Returns the number of a quota, which may be new.
    fn quota(&mut self, quota: &Quota) -> u16 {
        let known = self.quotas.iter().position(|known| known == quota);
        let number = known.unwrap_or_else(|| {
            self.quotas.push(*quota);
            self.quotas.len().saturating_sub(1)
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    /// Returns the place of an ask. A bucket that was used under another quota before is switched to this
    /// one.
    fn spot(&mut self, key: u16, quota: u16) -> AskSlot {
        let is_single = self.is_open && self.is_single(key);
        let id_of = |number: u16| self.quotas.get(usize::from(number)).map(record_id);
        let id = id_of(quota);
        let mut spot = AskSlot {
            offset: 0,
            quota,
            switched_from: None,
        };
        let (Some(class), Some(latest)) = (
            self.classes.get_mut(usize::from(key)),
            self.latest.get_mut(usize::from(key)),
        ) else {
            return spot;
        };
        let known = latest
            .iter_mut()
            .enumerate()
            .find(|(_, known)| is_single || **known == quota || id_of(**known) == id);
        match known {
            Some((offset, known)) => {
                spot.offset = u16::try_from(offset).unwrap_or(u16::MAX);
                if *known != quota {
                    spot.switched_from = Some(std::mem::replace(known, quota));
                }
            }
            None => {
                spot.offset = u16::try_from(class.len()).unwrap_or(u16::MAX);
                class.push(quota);
                latest.push(quota);
            }
        }
        spot
    }

    /// Writes the shapes and the program, once all numbers are known.
    fn finish(self, requests: &[&SlotAsks]) -> ScriptCall {
        let is_plain = self.is_plain(requests);
        let mut shapes = Shapes::default();
        let mut spots = self.spots.as_slice();
        let mut keys = self.request_keys.as_slice();
        for request in requests {
            let (of_it, later) = spots
                .split_at_checked(request.asks.len())
                .unwrap_or_default();
            let (its_keys, later_keys) = keys
                .split_at_checked(request.keys.len())
                .unwrap_or_default();
            shapes.add(its_keys, |shape| {
                if is_plain {
                    takes_only::push_shape(shape, request, of_it);
                } else {
                    push_shape(shape, request, of_it);
                }
            });
            (spots, keys) = (later, later_keys);
        }
        let (places, bases) = self.places();
        let asks = self.spots.iter().zip(&self.spot_keys).map(|(spot, key)| {
            let base = bases.get(usize::from(*key)).copied().unwrap_or(0);
            (base.saturating_add(spot.offset), spot.quota)
        });
        ScriptCall {
            asks: asks.collect(),
            program: self.program(&shapes, is_plain),
            switches: self.spots.iter().any(|spot| spot.switched_from.is_some()),
            is_open: self.is_open,
            places,
            keys: self.keys,
            quotas: self.quotas,
        }
    }

    /// Returns true if the cheap program is enough: enforced takes, each from all bands that the call
    /// uses under its keys.
    fn is_plain(&self, requests: &[&SlotAsks]) -> bool {
        if self.is_open || !self.quotas.iter().all(takes_only::is_plain) {
            return false;
        }
        let mut spots = self.spots.as_slice();
        let mut spot_keys = self.spot_keys.as_slice();
        for request in requests {
            let asks = request.asks.len();
            let (of_it, later) = spots.split_at_checked(asks).unwrap_or_default();
            let (keys, later_keys) = spot_keys.split_at_checked(asks).unwrap_or_default();
            let bands_under = |key: &u16| self.classes.get(usize::from(*key)).map(QuotaSet::len);
            let is_whole = |key: &u16| {
                let asked = keys.iter().filter(|other| *other == key).count();
                bands_under(key) == Some(asked) && asked < 256
            };
            let has_all_keys = request.keys.len() < 256
                && (0..request.keys.len())
                    .all(|key| request.asks.iter().any(|ask| usize::from(ask.key) == key));
            if !is_simple(request, of_it) || !keys.iter().all(is_whole) || !has_all_keys {
                return false;
            }
            (spots, spot_keys) = (later, later_keys);
        }
        true
    }

    /// All places, those of a key side by side, and the first of each key.
    fn places(&self) -> (Vec<BandRef>, Vec<u16>) {
        let mut places = Vec::with_capacity(self.spots.len());
        let mut bases = Vec::with_capacity(self.keys.len());
        for (key, class) in (0..).zip(&self.classes) {
            bases.push(u16::try_from(places.len()).unwrap_or(u16::MAX));
            places.extend(class.iter().map(|quota| BandRef { key, quota: *quota }));
        }
        (places, bases)
    }

    /// Writes the program: counts, quotas, the quotas of each key, shapes, and requests.
    fn program(&self, shapes: &Shapes, is_plain: bool) -> Vec<u8> {
        let mut classes: SmallVec<[&QuotaSet; 4]> = SmallVec::new();
        let mut of_keys = Vec::with_capacity(self.keys.len());
        for class in &self.classes {
            let known = classes.iter().rposition(|known| *known == class);
            of_keys.push(known.unwrap_or(classes.len()));
            if known.is_none() {
                classes.push(class);
            }
        }
        let mut program = Vec::with_capacity(128_usize.saturating_add(shapes.runs.len()));
        push_count(&mut program, if is_plain { 0 } else { self.quotas.len() });
        push_count(&mut program, classes.len());
        push_count(&mut program, shapes.known.len());
        push_count(&mut program, shapes.run_count);
        if is_plain {
            for class in &classes {
                let quota = |quota: &u16| self.quotas.get(usize::from(*quota));
                takes_only::push_class(&mut program, class.iter().filter_map(quota));
            }
        } else {
            self.push_general(&mut program, &classes);
        }
        if classes.len() > 1 {
            for class in of_keys {
                push_count(&mut program, class);
            }
        }
        for shape in &shapes.known {
            program.extend_from_slice(shape);
        }
        program.extend_from_slice(&shapes.runs);
        program
    }

    /// Writes the quotas and their sets in the form of the general program.
    fn push_general(&self, program: &mut Vec<u8>, classes: &[&QuotaSet]) {
        for quota in &self.quotas {
            push_quota(program, quota);
        }
        for class in classes {
            push_count(program, class.len());
            for quota in *class {
                push_count(program, usize::from(*quota).saturating_add(1));
            }
        }
    }
}
