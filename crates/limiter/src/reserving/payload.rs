//! The payload of a reservation id: everything needed to settle it, so that no instance has to remember it.

use super::bytes::{PayloadReader, push_bytes, push_number};
use super::seal::PAYLOAD_BYTES_MAX;
use tidegate_core::quota::QuotaNumbers;
use tidegate_core::{Algorithm, OnChange, Quota, Receipt, Timestamp};

/// The maximum number of buckets that one reservation may charge.
pub(super) const BUCKETS_MAX: usize = 64;

/// The maximum size of a band, without its bucket's name: about twenty numbers of at most ten bytes.
const BAND_BYTES_MAX: usize = 200;

/// The charges of a reservation, and its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) policy: Box<str>,
    /// The requested units.
    pub(super) estimate: u64,
    /// The time to live, from each charge on.
    pub(super) ttl_us: u64,
    /// The id of the limiter whose local buckets some of these are; 0 if none is.
    pub(super) instance: u64,
    pub(super) buckets: Vec<SealedCharge>,
}

/// A bucket that was charged.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SealedCharge {
    pub(super) home: ChargeHome,
    pub(super) name: Box<[u8]>,
    pub(super) scope: usize,
    pub(super) bands: Vec<SealedBand>,
}

/// The location of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeHome {
    /// In the store.
    Store,
    /// In the memory of this process, which decided in place of the store.
    Here,
}

/// The charge to one band of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealedBand {
    /// By value, and not by name: a reload before the reservation is settled must not change the value of its
    /// units. For a local bucket, the share of the quota.
    pub(super) quota: Quota,
    pub(super) receipt: Receipt,
}

// Implemented by hand: buckets are named after clients.
impl std::fmt::Debug for SealedCharge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Charged")
            .field("home", &self.home)
            .field("bands", &self.bands.len())
            .finish_non_exhaustive()
    }
}

impl Payload {
    /// Returns true if a reservation that charges these buckets, one for each band, can be encoded,
    /// regardless of their outcomes.
    pub(super) fn fits<'b>(policy: &str, charges: impl Iterator<Item = &'b [u8]>) -> bool {
        let (mut bytes, mut count) = (policy.len().saturating_add(BAND_BYTES_MAX), 0_usize);
        for bucket in charges {
            // A name is encoded once for all its bands; counting it for each is a safe upper bound.
            bytes = bytes.saturating_add(bucket.len() + BAND_BYTES_MAX);
            count = count.saturating_add(1);
        }
        bytes <= PAYLOAD_BYTES_MAX && count <= BUCKETS_MAX
    }

    /// Encodes the payload.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        push_number(&mut out, self.instance);
        push_number(&mut out, self.estimate);
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
        let (instance, estimate) = (bytes.number()?, bytes.number()?);
        let ttl_us = bytes.number()?;
        let policy = bytes.text()?.into();
        let count = bytes.count().filter(|count| *count <= BUCKETS_MAX)?;
        let buckets = (0..count).map(|_| SealedCharge::read(&mut bytes));
        let payload = Self {
            policy,
            estimate,
            ttl_us,
            instance,
            buckets: buckets.collect::<Option<_>>()?,
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
        for SealedBand { quota, receipt } in &self.bands {
            push_quota(out, *quota);
            push_number(out, receipt.cost);
            push_number(out, receipt.at.as_micros());
            push_number(out, receipt.until.since(receipt.at));
            push_number(out, receipt.mark);
        }
    }

    fn read(bytes: &mut PayloadReader<'_>) -> Option<Self> {
        let home = match bytes.byte()? {
            0 => ChargeHome::Store,
            1 => ChargeHome::Here,
            _ => return None,
        };
        let name: Box<[u8]> = bytes.bytes()?.into();
        let scope = bytes.count().filter(|scope| *scope <= name.len())?;
        let count = bytes.count().filter(|count| *count <= BUCKETS_MAX)?;
        let bands = (0..count).map(|_| SealedBand::read(bytes));
        Some(Self {
            home,
            scope,
            bands: bands.collect::<Option<_>>()?,
            name,
        })
    }
}

impl SealedBand {
    fn read(bytes: &mut PayloadReader<'_>) -> Option<Self> {
        let quota = read_quota(bytes)?;
        let cost = bytes.number()?;
        let at = Timestamp::from_micros(bytes.number()?);
        let mut receipt = Receipt::by_the_clock(at, cost);
        receipt.until = at.plus(bytes.number()?);
        receipt.mark = bytes.number()?;
        Some(Self { quota, receipt })
    }
}

/// Appends a quota as its numbers.
fn push_quota(out: &mut Vec<u8>, quota: Quota) {
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
}

fn read_quota(bytes: &mut PayloadReader<'_>) -> Option<Quota> {
    let kind = bytes.byte()?;
    let id = bytes.number()?;
    let numbers = QuotaNumbers {
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
    };
    Quota::try_from(numbers).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU32;

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
        ) -> SealedBand {
            let at = Timestamp::from_micros(at);
            let mut receipt = Receipt::by_the_clock(at, cost);
            (receipt.until, receipt.mark) = (at.plus(owed), mark);
            SealedBand { quota, receipt }
        }
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
        fn what_was_written_is_read_and_nothing_less(
            buckets in prop::collection::vec(charged(), 0..5),
            numbers in any::<[u64; 3]>(),
        ) {
            let [estimate, ttl_us, instance] = numbers;
            let payload = Payload { policy: "llm".into(), estimate, ttl_us, instance, buckets };
            let written = payload.write();
            prop_assert_eq!(Payload::read(&written), Some(payload));
            for length in 0..written.len() {
                prop_assert_eq!(Payload::read(&written[..length]), None);
            }
        }

        #[test]
        fn what_fits_is_never_too_long(
            buckets in prop::collection::vec(charged(), 0..40),
            numbers in any::<[u64; 3]>(),
        ) {
            let [estimate, ttl_us, instance] = numbers;
            let names: Vec<&[u8]> = buckets
                .iter()
                .flat_map(|bucket| bucket.bands.iter().map(|_| &*bucket.name))
                .collect();
            let fits = Payload::fits("llm", names.into_iter());
            let payload =
                Payload { policy: "llm".into(), estimate, ttl_us, instance, buckets };
            let length = payload.write().len();
            prop_assert!(!fits || length <= PAYLOAD_BYTES_MAX, "{length}");
        }

        #[test]
        fn whatever_the_bytes_are_reading_them_ends(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            drop(Payload::read(&bytes));
        }
    }
}
