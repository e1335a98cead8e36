//! A bucket's state as bytes: a byte for the version of this format, then numbers of eight bytes,
//! little-endian: the instant of the write, and those of [`Bucket::encode`].

use crate::{Bucket, Quota, Timestamp};

/// First byte of every value: the version of the format.
const VERSION: u8 = 1;

/// A state as it was read.
pub(super) struct StoredBucket<'a> {
    /// The instant of the write.
    pub(super) written: Timestamp,
    numbers: &'a [[u8; 8]],
}

/// Returns the bytes of `bucket`, written at `written`.
pub(super) fn encode(bucket: &Bucket, quota: &Quota, written: Timestamp) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(written.as_micros().to_le_bytes());
    bucket.encode(quota, &mut |number| bytes.extend(number.to_le_bytes()));
    bytes
}

impl<'a> StoredBucket<'a> {
    /// Returns `None` for bytes that [`encode`] cannot have written.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&VERSION, bytes) = bytes.split_first()? else {
            return None;
        };
        let ([written, numbers @ ..], []) = bytes.as_chunks::<8>() else {
            return None;
        };
        Some(Self {
            written: Timestamp::from_micros(u64::from_le_bytes(*written)),
            numbers,
        })
    }

    /// Returns the state under `quota`; `None` if the numbers cannot be of its algorithm.
    pub(super) fn bucket(&self, quota: &Quota, now: Timestamp) -> Option<Bucket> {
        let numbers = self.numbers.iter().copied().map(u64::from_le_bytes);
        Bucket::decode(numbers, quota, now)
    }
}
