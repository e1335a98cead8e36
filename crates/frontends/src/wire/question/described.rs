//! Descriptors: lists of entries with which a proxy describes a request.

use crate::wire::cost;
use crate::wire::fault::WireFault;
use crate::wire::json::{JsonReader, JsonResult};
use crate::wire::members::{JsonMember, json_members, unknown_member};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use tidegate::{CostMap, Descriptor, DescriptorHits, LimitOverride};

/// The maximum number of descriptors of a check request.
pub const DESCRIPTORS_MAX: usize = 64;

/// The maximum number of entries of a descriptor.
pub const ENTRIES_MAX: usize = 32;

json_members! {
    /// A field of a descriptor.
    pub(super) enum DescriptorField {
        /// The entries, which select the limits.
        Entries = "entries",
        /// The units that the descriptor consumes, as a number or a map like `cost`. The number 0 consumes
        /// nothing, and is refused if nothing is left. A negative number refunds units and is never refused.
        /// Default: the cost of the request.
        Hits = "hits",
        /// A limit in place of the limits that are configured for the descriptor.
        Limit = "limit",
    }
}

json_members! {
    /// A field of an entry.
    pub(super) enum EntryField {
        /// The name.
        Key = "key",
        /// The value.
        Value = "value",
    }
}

json_members! {
    /// A field of a descriptor's own limit.
    pub(super) enum RequestLimitField {
        /// The units for each period.
        Amount = "amount",
        /// The period in milliseconds.
        PeriodMs = "period_ms",
    }
}

/// The descriptors of a check request. Most requests have none, which takes no memory.
#[derive(Default)]
pub struct QuestionDescriptors<'a> {
    list: Vec<JsonDescriptor<'a>>,
    /// The entries of all descriptors in sequence.
    entries: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// One descriptor.
struct JsonDescriptor<'a> {
    entries: Range<usize>,
    hits: JsonHits<'a>,
    limit: Option<LimitOverride>,
}

/// The hits of a descriptor.
#[derive(Default)]
enum JsonHits<'a> {
    /// The cost of the request.
    #[default]
    AsRequest,
    Cost(CostMap<'a>),
    GiveBack(u64),
}

impl JsonHits<'_> {
    fn hits(&self) -> DescriptorHits<'_> {
        match self {
            Self::AsRequest => DescriptorHits::AsRequest,
            Self::GiveBack(hits) => DescriptorHits::GiveBack(*hits),
            Self::Cost(CostMap::Number(hits)) => DescriptorHits::Take(*hits),
            Self::Cost(units) => DescriptorHits::Units(units.into()),
        }
    }
}

impl<'a> QuestionDescriptors<'a> {
    /// Parses a text that consists of such a list alone, without JSON around it.
    pub(crate) fn parse(text: &'a [u8]) -> JsonResult<Self> {
        let mut described = Self::default();
        let mut reader = JsonReader::new(text)?;
        described.read(&mut reader)?;
        reader.end()?;
        Ok(described)
    }

    /// Reads a list of `{"entries": [{"key", "value"}], "hits", "limit": {"amount", "period_ms"}}`.
    pub(super) fn read(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<()> {
        if reader.null()? {
            return Ok(());
        }
        reader.list(|reader, nth| {
            bounded(reader, nth, DESCRIPTORS_MAX, "descriptors")?;
            self.read_one(reader)
        })
    }

    fn read_one(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<()> {
        let (at, start) = (reader.at(), self.entries.len());
        let mut entries = SingleField::default();
        let (mut hits, mut limit) = (SingleField::default(), SingleField::default());
        reader.object(|reader, name| match DescriptorField::named(name) {
            Some(DescriptorField::Entries) => entries.set(reader, |it| self.read_entries(it)),
            Some(DescriptorField::Hits) => hits.set(reader, read_hits),
            Some(DescriptorField::Limit) => limit.set(reader, read_limit),
            None => unknown::<DescriptorField>(reader),
        })?;
        if self.entries.len() == start {
            let message = "expected at least one entry, found none";
            return Err(WireFault::new(at, message).within("entries"));
        }
        self.list.push(JsonDescriptor {
            entries: start..self.entries.len(),
            hits: hits.0.flatten().unwrap_or_default(),
            limit: limit.0.flatten(),
        });
        Ok(())
    }

    fn read_entries(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<()> {
        reader.list(|reader, nth| {
            bounded(reader, nth, ENTRIES_MAX, "entries")?;
            let at = reader.at();
            let (mut key, mut value) = (SingleField::default(), SingleField::default());
            reader.object(|reader, name| match EntryField::named(name) {
                Some(EntryField::Key) => key.set(reader, JsonReader::string),
                Some(EntryField::Value) => value.set(reader, JsonReader::string),
                None => unknown::<EntryField>(reader),
            })?;
            let missing = |name| WireFault::new(at, "expected a string, found none").within(name);
            let key: Cow<'a, str> = key.0.ok_or_else(|| missing("key"))?;
            if key.is_empty() {
                return Err(WireFault::new(at, "expected a name, found ``").within("key"));
            }
            let value = value.0.ok_or_else(|| missing("value"))?;
            self.entries.push((key, value));
            Ok(())
        })
    }

    /// Returns the number of descriptors.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there are no descriptors.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns all entries, in the form that [`descriptors`](Self::descriptors) needs.
    pub(super) fn entries(&self) -> Vec<(&str, &str)> {
        let entries = self.entries.iter();
        entries.map(|(key, value)| (&**key, &**value)).collect()
    }

    /// Returns the descriptors for the limiter. `entries` must be those of this list.
    pub(super) fn descriptors<'r>(
        &'r self,
        entries: &'r [(&'r str, &'r str)],
    ) -> Vec<Descriptor<'r>> {
        let descriptor = |one: &'r JsonDescriptor<'_>| Descriptor {
            entries: entries.get(one.entries.clone()).unwrap_or_default(),
            hits: one.hits.hits(),
            limit: one.limit,
        };
        self.list.iter().map(descriptor).collect()
    }
}

// Implemented by hand: entries may be secrets.
impl fmt::Debug for QuestionDescriptors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Described")
            .field("count", &self.list.len())
            .finish_non_exhaustive()
    }
}

/// A field that may occur once.
struct SingleField<T>(Option<T>);

impl<T> Default for SingleField<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> SingleField<T> {
    fn set<'a>(
        &mut self,
        reader: &mut JsonReader<'a>,
        read: impl FnOnce(&mut JsonReader<'a>) -> JsonResult<T>,
    ) -> JsonResult<()> {
        if self.0.is_some() {
            return Err(WireFault::new(reader.at(), "duplicate field"));
        }
        self.0 = Some(read(reader)?);
        Ok(())
    }
}

/// Reads the hits of a descriptor. A negative number is a refund.
fn read_hits<'a>(reader: &mut JsonReader<'a>) -> JsonResult<Option<JsonHits<'a>>> {
    if reader.null()? {
        return Ok(None);
    }
    if reader.peek() != Some(b'-') {
        return cost::read(reader).map(|hits| Some(JsonHits::Cost(hits)));
    }
    let at = reader.at();
    let number = reader.number()?;
    match number.strip_prefix('-').map(str::parse) {
        Some(Ok(0)) => Ok(Some(JsonHits::Cost(CostMap::Number(0)))),
        Some(Ok(hits)) => Ok(Some(JsonHits::GiveBack(hits))),
        _ => {
            let message = format!(
                "expected a whole number from -{most} to {most}, found {number}",
                most = u64::MAX
            );
            Err(WireFault::new(at, message))
        }
    }
}

/// Reads the limit that a descriptor brings.
fn read_limit(reader: &mut JsonReader<'_>) -> JsonResult<Option<LimitOverride>> {
    if reader.null()? {
        return Ok(None);
    }
    let at = reader.at();
    let (mut amount, mut period_us) = (SingleField::default(), SingleField::default());
    reader.object(|reader, name| match RequestLimitField::named(name) {
        Some(RequestLimitField::Amount) => amount.set(reader, JsonReader::whole),
        Some(RequestLimitField::PeriodMs) => period_us.set(reader, read_period),
        None => unknown::<RequestLimitField>(reader),
    })?;
    let missing = |name| WireFault::new(at, "expected a whole number, found none").within(name);
    Ok(Some(LimitOverride {
        amount: amount.0.ok_or_else(|| missing("amount"))?,
        period_us: period_us.0.ok_or_else(|| missing("period_ms"))?,
    }))
}

/// Reads milliseconds and returns microseconds.
fn read_period(reader: &mut JsonReader<'_>) -> JsonResult<u64> {
    let at = reader.at();
    let period_us = reader.whole()?.checked_mul(1_000).filter(|it| *it > 0);
    period_us.ok_or_else(|| {
        let message = format!("expected from 1 to {} milliseconds", u64::MAX / 1_000);
        WireFault::new(at, message)
    })
}

fn bounded(reader: &JsonReader<'_>, nth: usize, most: usize, what: &str) -> JsonResult<()> {
    if nth == most {
        let message = format!("more than {most} {what}");
        return Err(WireFault::new(reader.at(), message));
    }
    Ok(())
}

#[cold]
fn unknown<M: JsonMember>(reader: &JsonReader<'_>) -> JsonResult<()> {
    let message = unknown_member(M::ALL.iter().copied());
    Err(WireFault::new(reader.at(), message))
}
