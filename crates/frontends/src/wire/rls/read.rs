//! `RateLimitRequest`, borrowed from its bytes.
//!
//! Read in one pass, without a copy: texts stay in place, and lists of the usual length need no allocation.
//! Repeated fields follow protobuf's rules: for a number or a text the last value wins, and messages are
//! merged.

use super::unit;
use crate::wire::protobuf::read::{ProtobufError, WireFields, WireValue};
use smallvec::SmallVec;
use std::ops::Range;
use tidegate_policy::{Cost, Descriptor, DescriptorHits, LimitOverride};

/// The maximum number of descriptors of one call.
pub const DESCRIPTORS_MAX: usize = 128;
/// The maximum number of entries of one descriptor.
pub const ENTRIES_MAX: usize = 64;

/// A rate limit call.
#[derive(Clone, Debug, Default)]
pub struct RlsCall<'a> {
    /// The domain, which selects the policy.
    pub domain: &'a str,
    /// The cost of each descriptor that does not set one; 0 if absent.
    pub hits: u32,
    /// The entries of all descriptors.
    pub entries: SmallVec<[(&'a str, &'a str); 8]>,
    /// The descriptors.
    pub descriptors: SmallVec<[DescriptorRange; 4]>,
}

/// One descriptor: the range of its entries, and its other fields.
#[derive(Clone, Debug, Default)]
pub struct DescriptorRange {
    pub(super) entries: Range<usize>,
    pub(super) hits: Option<u64>,
    pub(super) is_negative: bool,
    pub(super) limit: Option<RlsOverride>,
}

/// A limit that the call brings: requests per unit, and the unit's number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RlsOverride {
    pub(super) requests_per_unit: u32,
    pub(super) unit: u32,
}

/// Descriptors for the limiter.
pub type Descriptors<'a> = SmallVec<[Descriptor<'a>; 4]>;

/// The errors of a well-formed but invalid call, word for word those of Envoy's own service if it has them.
const NO_DOMAIN: ProtobufError = ProtobufError("rate limit domain must not be empty");
const NO_DESCRIPTORS: ProtobufError = ProtobufError("rate limit descriptor list must not be empty");
const NO_UNIT: ProtobufError = ProtobufError("the limit of a descriptor has an unknown unit");
const TOO_MANY_DESCRIPTORS: ProtobufError =
    ProtobufError("a call may have at most 128 descriptors");
const TOO_MANY_ENTRIES: ProtobufError = ProtobufError("a descriptor may have at most 64 entries");

impl<'a> RlsCall<'a> {
    /// Reads a message.
    ///
    /// Unknown fields are ignored, as protobuf requires: a newer proxy may send them. The descriptors are valid
    /// UTF-8 and within the bounds on their number, but a call without any is only rejected by
    /// [`descriptors`](Self::descriptors()).
    ///
    /// # Errors
    ///
    /// If the bytes are no protobuf message of this form, or hold too many descriptors or entries.
    pub fn read(message: &'a [u8]) -> Result<Self, ProtobufError> {
        let mut call = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                3 => call.hits = value.narrow()?,
                _ => call.shared(number, value)?,
            }
        }
        Ok(call)
    }

    /// Reads a field that all calls have in common, and ignores any other.
    #[inline]
    pub fn shared(&mut self, number: u32, value: WireValue<'a>) -> Result<(), ProtobufError> {
        match number {
            1 => self.domain = value.text()?,
            2 => self.descriptor(value.bytes()?)?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the cost of each descriptor that does not set one: one request if the call sets none either.
    pub fn cost(&self) -> Cost<'static> {
        match self.hits {
            0 => Cost::ONE_REQUEST,
            hits => Cost::from(u64::from(hits)),
        }
    }

    /// Returns the descriptors for the limiter, or an error if the call is invalid.
    ///
    /// # Errors
    ///
    /// If the domain or the list of descriptors is empty, or the unit of a limit is unknown.
    pub fn descriptors(&self) -> Result<Descriptors<'_>, ProtobufError> {
        self.descriptors_at(self.hits.max(1).into())
    }

    /// Does the same with `cost` as the default of each descriptor.
    pub(super) fn descriptors_at(&self, cost: u64) -> Result<Descriptors<'_>, ProtobufError> {
        if self.domain.is_empty() {
            return Err(NO_DOMAIN);
        }
        if self.descriptors.is_empty() {
            return Err(NO_DESCRIPTORS);
        }
        let each = self.descriptors.iter();
        each.map(|descriptor| {
            Ok(Descriptor {
                entries: self
                    .entries
                    .get(descriptor.entries.clone())
                    .unwrap_or_default(),
                hits: descriptor.hits(cost),
                limit: descriptor
                    .limit
                    .map(RlsOverride::into_override)
                    .transpose()?,
            })
        })
        .collect()
    }

    fn descriptor(&mut self, message: &'a [u8]) -> Result<(), ProtobufError> {
        let begin = self.entries.len();
        let mut described = DescriptorRange::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => {
                    let pair = entry(value.bytes()?)?;
                    self.entry(begin, pair)?;
                }
                2 => described.limit = Some(limit(described.limit, value.bytes()?)?),
                3 => described.hits = Some(wrapped(described.hits, value)?),
                4 => described.is_negative = value.varint()? != 0,
                _ => {}
            }
        }
        described.entries = begin..self.entries.len();
        self.add(described)
    }

    /// Adds an entry to the descriptor whose entries begin at `begin`.
    pub fn entry(&mut self, begin: usize, pair: (&'a str, &'a str)) -> Result<(), ProtobufError> {
        if self.entries.len().saturating_sub(begin) >= ENTRIES_MAX {
            return Err(TOO_MANY_ENTRIES);
        }
        self.entries.push(pair);
        Ok(())
    }

    /// Adds a descriptor.
    pub fn add(&mut self, described: DescriptorRange) -> Result<(), ProtobufError> {
        if self.descriptors.len() >= DESCRIPTORS_MAX {
            return Err(TOO_MANY_DESCRIPTORS);
        }
        self.descriptors.push(described);
        Ok(())
    }
}

fn entry(message: &[u8]) -> Result<(&str, &str), ProtobufError> {
    let mut pair = ("", "");
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => pair.0 = value.text()?,
            2 => pair.1 = value.text()?,
            _ => {}
        }
    }
    Ok(pair)
}

fn limit(before: Option<RlsOverride>, message: &[u8]) -> Result<RlsOverride, ProtobufError> {
    let mut limit = before.unwrap_or_default();
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => limit.requests_per_unit = value.narrow()?,
            2 => limit.unit = value.narrow()?,
            _ => {}
        }
    }
    Ok(limit)
}

/// Reads a number wrapped in a message, so that 0 differs from absent.
fn wrapped(before: Option<u64>, value: WireValue<'_>) -> Result<u64, ProtobufError> {
    let mut wrapped = before.unwrap_or_default();
    let mut fields = WireFields::of(value.bytes()?);
    while let Some((number, value)) = fields.next_field()? {
        if number == 1 {
            wrapped = value.varint()?;
        }
    }
    Ok(wrapped)
}

impl DescriptorRange {
    /// Returns the hits of the descriptor in a call that costs `cost`.
    fn hits(&self, cost: u64) -> DescriptorHits<'static> {
        match (self.hits, self.is_negative) {
            (hits, true) => DescriptorHits::GiveBack(hits.unwrap_or(cost)),
            (Some(hits), false) => DescriptorHits::Take(hits),
            (None, false) => DescriptorHits::AsRequest,
        }
    }
}

impl RlsOverride {
    fn into_override(self) -> Result<LimitOverride, ProtobufError> {
        Ok(LimitOverride {
            amount: self.requests_per_unit.into(),
            period_us: unit::period_us(self.unit).ok_or(NO_UNIT)?,
        })
    }
}
