//! The payload of a reservation id: everything needed to settle it, so that no instance has to remember it.

use super::bytes::{PayloadReader, push_bytes, push_number};
use super::seal::PAYLOAD_BYTES_MAX;
use super::warned::SealedWarning;
use crate::decision::ChargeHome;
use std::num::NonZeroU64;
use tidegate_core::quota::{CalendarCode, QuotaNumbers};
use tidegate_core::{Algorithm, OnChange, Quota, Receipt, Timestamp};
use tidegate_policy::calendar::with_starts_around;

/// The maximum number of buckets that one reservation may charge.
pub(super) const BUCKETS_MAX: usize = 64;

/// The maximum number of units in an id. Policies count fewer.
const SEALED_UNITS_MAX: usize = 64;

/// The maximum size of a band, without its bucket's name: about twenty numbers of at most ten bytes.
const BAND_BYTES_MAX: usize = 200;

/// The maximum size of a unit, without its name: two numbers.
const UNIT_BYTES_MAX: usize = 20;

/// The charges of a reservation, and its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) policy: Box<str>,
    /// The units that the policy counts.
    pub(super) units: Vec<SealedUnit>,
    /// The time to live, from each charge on.
    pub(super) ttl_us: u64,
    /// The id of the limiter whose local buckets some of these are; 0 if none is.
    pub(super) instance: u64,
    pub(super) buckets: Vec<SealedCharge>,
}

/// A unit that the policy of a reservation counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedUnit {
    pub(super) name: Box<str>,
    /// The amount that the request asked for.
    pub(super) estimate: u64,
}

/// A bucket that was charged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealedCharge {
    pub(super) home: ChargeHome,
    pub(super) name: Box<[u8]>,
    pub(super) scope: usize,
    pub(super) bands: Vec<SealedBand>,
}

/// The charge to one band of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SealedBand {
    /// The index of its unit in the payload.
    pub(super) unit: usize,
    /// By value, and not by name: a reload before the reservation is settled must not change the value of its
    /// units. For a local bucket, the share of the quota.
    pub(super) quota: Quota,
    pub(super) receipt: Receipt,
    /// The shares of it that raise an alert; `None` if its limit has no `warn`.
    pub(super) warning: Option<Box<SealedWarning>>,
}

// Implemented by hand: buckets are named after clients.
impl std::fmt::Debug for SealedCharge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedCharge")
            .field("home", &self.home)
            .field("bands", &self.bands.len())
            .finish_non_exhaustive()
    }
}

impl Payload {
    /// Returns true if a reservation that charges these buckets, one for each band, can be encoded,
    /// regardless of their outcomes. Each comes with the size of its band's warning.
    pub(super) fn fits<'b>(
        policy: &str,
        units: &[SealedUnit],
        charges: impl Iterator<Item = (&'b [u8], usize)>,
    ) -> bool {
        let (mut bytes, mut count) = (policy.len().saturating_add(BAND_BYTES_MAX), 0_usize);
        for unit in units {
            bytes = bytes.saturating_add(unit.name.len() + UNIT_BYTES_MAX);
        }
        for (bucket, warning) in charges {
            // A name is encoded once for all its bands; counting it for each is a safe upper bound.
            bytes = bytes.saturating_add(bucket.len() + BAND_BYTES_MAX + warning);
            count = count.saturating_add(1);
        }
        bytes <= PAYLOAD_BYTES_MAX && count <= BUCKETS_MAX
    }

    /// Encodes the payload.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        push_number(&mut out, self.instance);
        push_number(&mut out, self.units.len() as u64);
        for unit in &self.units {
            push_bytes(&mut out, unit.name.as_bytes());
            push_number(&mut out, unit.estimate);
        }
        push_number(&mut out, self.ttl_us);
        push_bytes(&mut out, self.policy.as_bytes());
        push_number(&mut out, self.buckets.len() as u64);
        for bucket in &self.buckets {
            bucket.write(&mut out);
        }
        out
    }

    /// Decodes the output of [`write`](Self::write).
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bytes = PayloadReader(bytes);
        let instance = bytes.number()?;
        let count = bytes.count().filter(|count| *count <= SEALED_UNITS_MAX)?;
        let units = (0..count).map(|_| SealedUnit::read(&mut bytes));
        let units: Vec<SealedUnit> = units.collect::<Option<_>>()?;
        let ttl_us = bytes.number()?;
        let policy = bytes.text()?.into();
        let count = bytes.count().filter(|count| *count <= BUCKETS_MAX)?;
        let buckets = (0..count).map(|_| SealedCharge::read(&mut bytes, units.len()));
        let payload = Self {
            policy,
            ttl_us,
            instance,
            buckets: buckets.collect::<Option<_>>()?,
            units,
        };
        bytes.is_at_end().then_some(payload)
    }
}

impl SealedCharge {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.home == ChargeHome::Here));
        push_bytes(out, &self.name);
        push_number(out, self.scope as u64);
        push_number(out, self.bands.len() as u64);
        for band in &self.bands {
            let SealedBand {
                unit,
                quota,
                receipt,
                warning,
            } = band;
            push_number(out, *unit as u64);
            push_quota(out, *quota);
            push_number(out, receipt.cost);
            push_number(out, receipt.at.as_micros());
            push_number(out, receipt.until.since(receipt.at));
            push_number(out, receipt.mark);
            SealedWarning::write(warning.as_deref(), out);
        }
    }

    fn read(bytes: &mut PayloadReader<'_>, units: usize) -> Option<Self> {
        let home = match bytes.byte()? {
            0 => ChargeHome::Store,
            1 => ChargeHome::Here,
            _ => return None,
        };
        let name: Box<[u8]> = bytes.bytes()?.into();
        let scope = bytes.count().filter(|scope| *scope <= name.len())?;
        let count = bytes.count().filter(|count| *count <= BUCKETS_MAX)?;
        let bands = (0..count).map(|_| SealedBand::read(bytes, units));
        Some(Self {
            home,
            scope,
            bands: bands.collect::<Option<_>>()?,
            name,
        })
    }
}

impl SealedUnit {
    fn read(bytes: &mut PayloadReader<'_>) -> Option<Self> {
        Some(Self {
            name: bytes.text()?.into(),
            estimate: bytes.number()?,
        })
    }
}

impl SealedBand {
    fn read(bytes: &mut PayloadReader<'_>, units: usize) -> Option<Self> {
        let unit = bytes.count().filter(|unit| *unit < units)?;
        let quota = read_quota(bytes)?;
        let cost = bytes.number()?;
        let at = Timestamp::from_micros(bytes.number()?);
        let mut receipt = Receipt::by_the_clock(at, cost);
        receipt.until = at.plus(bytes.number()?);
        receipt.mark = bytes.number()?;
        let shares = SealedWarning::read_shares(bytes)?;
        let warning = if shares.is_empty() {
            None
        } else {
            Some(Box::new(SealedWarning::read_rest(shares, bytes)?))
        };
        Some(Self {
            unit,
            quota,
            receipt,
            warning,
        })
    }
}

/// Appends a quota as its numbers.
pub(super) fn push_quota(out: &mut Vec<u8>, quota: Quota) {
    let numbers = QuotaNumbers::from(quota);
    let on_change: u8 = match numbers.on_change {
        OnChange::Keep => 0,
        OnChange::Scale => 1,
        OnChange::Reset => 2,
    };
    let flags = u8::from(numbers.refundable) | u8::from(numbers.lends) << 1 | on_change << 2;
    out.push(numbers.algorithm.code() | flags << 4);
    for number in [
        numbers.id,
        numbers.family ^ numbers.id,
        numbers.amount,
        numbers.tick_us,
        numbers.period,
        numbers.capacity,
        numbers.overdraft,
        numbers.queue,
        numbers.drain,
        numbers.price,
        numbers.ahead_max,
    ] {
        push_number(out, number);
    }
    if numbers.algorithm == Algorithm::CalendarWindow {
        let [start, end, ..] = numbers.starts;
        out.push(u8::from(numbers.calendar.is_some()));
        push_number(out, start);
        push_number(out, end.saturating_sub(start));
    }
}

/// Returns a quota that knows only the window in which it was charged. Settled after that, it changes nothing.
pub(super) fn in_its_window(quota: &Quota, at: Timestamp) -> Quota {
    let dated = with_starts_around(quota, at);
    match dated.window_at(at) {
        Some(span) if quota.calendar().is_some() => {
            quota.with_starts([span.start_us, span.end_us, span.end_us, span.end_us])
        }
        _ => *quota,
    }
}

/// Any calendar: a quota in an id needs no other window than its own.
const SOME_CALENDAR: CalendarCode = CalendarCode::new(NonZeroU64::MAX);

/// Reads the window in which a quota was charged.
fn read_window(bytes: &mut PayloadReader<'_>) -> Option<(Option<CalendarCode>, [u64; 4])> {
    let calendar = (bytes.byte()? == 1).then_some(SOME_CALENDAR);
    let start = bytes.number()?;
    let end = start.checked_add(bytes.number()?)?;
    Some((calendar, [start, end, end, end]))
}

pub(super) fn read_quota(bytes: &mut PayloadReader<'_>) -> Option<Quota> {
    let kind = bytes.byte()?;
    let id = bytes.number()?;
    let mut numbers = QuotaNumbers {
        algorithm: Algorithm::from_code(kind & 0xf)?,
        refundable: kind & 0x10 != 0,
        lends: kind & 0x20 != 0,
        on_change: match kind >> 6 {
            0 => OnChange::Keep,
            1 => OnChange::Scale,
            2 => OnChange::Reset,
            _ => return None,
        },
        id,
        family: bytes.number()? ^ id,
        amount: bytes.number()?,
        tick_us: bytes.number()?,
        period: bytes.number()?,
        capacity: bytes.number()?,
        overdraft: bytes.number()?,
        queue: bytes.number()?,
        drain: bytes.number()?,
        price: bytes.number()?,
        ahead_max: bytes.number()?,
        calendar: None,
        starts: [0; 4],
    };
    if numbers.algorithm == Algorithm::CalendarWindow {
        (numbers.calendar, numbers.starts) = read_window(bytes)?;
    }
    Quota::try_from(numbers).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU32;
    use tidegate_policy::WarnShares;

    fn algorithm() -> impl Strategy<Value = Algorithm> {
        prop::sample::select(&Algorithm::ALL[..])
    }

    prop_compose! {
        fn quota()(
            algorithm in algorithm(),
            amount in 0..=10_000_u64,
            period_us in 1..=90_000_000_000_u64,
            burst in 1..=20_000_u64,
            overdraft in 0..=100_u64,
            refundable in any::<bool>(),
            label in prop::option::of(Just("hourly")),
            lends in any::<bool>(),
            share in prop::option::of((1..=9_u32, 1..=9_u32)),
        ) -> Option<Quota> {
            let mut spec = Quota::new(amount, period_us)
                .algorithm(algorithm)
                .overdraft(overdraft)
                .refundable(refundable);
            if algorithm == Algorithm::TokenBucket && amount > 0 {
                spec = spec.burst(burst);
            }
            if let Some(label) = label {
                spec = spec.label(label);
            }
            let quota = spec.build().ok()?.with_lending(lends);
            let whole = |n| NonZeroU32::new(n).unwrap();
            Some(match share {
                Some((n, d)) => quota.at_share(whole(n), whole(d)),
                None => quota,
            })
        }
    }

    prop_compose! {
        fn lent()(
            quota in quota().prop_filter_map("not representable", |quota| quota),
            at in 0..=(1_u64 << 53),
            owed in 0..=(1_u64 << 60),
            cost in any::<u64>(),
            mark in any::<u64>(),
            warning in prop::option::of(warning()),
        ) -> SealedBand {
            let at = Timestamp::from_micros(at);
            let mut receipt = Receipt::by_the_clock(at, cost);
            (receipt.until, receipt.mark) = (at.plus(owed), mark);
            let warning = warning.map(Box::new);
            SealedBand { unit: 0, quota, receipt, warning }
        }
    }

    prop_compose! {
        fn warning()(
            shares in prop::sample::subsequence((1..=100_u8).collect::<Vec<_>>(), 1..=WarnShares::MAX),
            limit in "[a-z]{1,40}",
            band in "[a-z0-9/]{1,64}",
            key in prop::option::of("[a-z:]{1,80}"),
        ) -> SealedWarning {
            let shares = WarnShares::new(&shares).unwrap();
            let key = key.map(Into::into);
            SealedWarning { shares, limit: limit.into(), band: band.into(), key }
        }
    }

    fn units() -> impl Strategy<Value = Vec<SealedUnit>> {
        let unit = ("[a-z]{1,32}", any::<u64>());
        let unit = unit.prop_map(|(name, estimate)| SealedUnit {
            name: name.into(),
            estimate,
        });
        prop::collection::vec(unit, 1..17)
    }

    prop_compose! {
        fn charged()(
            name in prop::collection::vec(any::<u8>(), 1..80),
            bands in prop::collection::vec(lent(), 1..4),
            is_here in any::<bool>(),
        ) -> SealedCharge {
            let home = if is_here { ChargeHome::Here } else { ChargeHome::Store };
            SealedCharge { home, scope: name.len() / 2, name: name.into(), bands }
        }
    }

    proptest! {
        #[test]
        fn a_payload_is_read_back_completely(
            buckets in prop::collection::vec(charged(), 0..5),
            units in units(),
            numbers in any::<[u64; 2]>(),
        ) {
            let [ttl_us, instance] = numbers;
            let payload = Payload { policy: "llm".into(), units, ttl_us, instance, buckets };
            let written = payload.write();
            prop_assert_eq!(Payload::read(&written), Some(payload));
            for length in 0..written.len() {
                prop_assert_eq!(Payload::read(&written[..length]), None);
            }
        }

        #[test]
        fn an_accepted_payload_is_never_too_long(
            buckets in prop::collection::vec(charged(), 0..40),
            units in units(),
            numbers in any::<[u64; 2]>(),
        ) {
            let [ttl_us, instance] = numbers;
            let warned = |band: &SealedBand| band.warning.as_ref().map_or(0, |it| it.bytes_max());
            let charges: Vec<(&[u8], usize)> = buckets
                .iter()
                .flat_map(|bucket| bucket.bands.iter().map(|band| (&*bucket.name, warned(band))))
                .collect();
            let fits = Payload::fits("llm", &units, charges.into_iter());
            let payload =
                Payload { policy: "llm".into(), units, ttl_us, instance, buckets };
            let length = payload.write().len();
            prop_assert!(!fits || length <= PAYLOAD_BYTES_MAX, "{length}");
        }

        #[test]
        fn reading_any_payload_terminates(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            drop(Payload::read(&bytes));
        }
    }
}
