//! Buckets, sets and counts as bytes, one entry after the other.
//!
//! | entry | bytes |
//! |---|---|
//! | word | fingerprint (8), instant in microseconds since the Unix epoch (8), small number (2) |
//! | record | fingerprint (8), instant at which it is full (8), code of its basis (8), period (8), code of its state (1), count of numbers (4), numbers (8 each) |
//! | overflow bucket | a record, then 0, or 1 and two filters of 32 words with their ends (264 each) |
//! | set | name; then members, each with its end (8), at most as many as a block has room for |
//! | counts | name, end of the counts (8), end of the period (8); then for each name 0 or, if its period is being closed, 1; the name, its count (8) |
//!
//! A text is its length (4) and its bytes. An instant that never comes is 2^64 - 1.

use crate::filter::{ChargedKeys, WORDS};
use crate::shard::KeptRecord;
use crate::shared_state::{KeptCounts, KeptMember, NEVER};
use crate::word;
use tidegate_core::{Bucket, Timestamp};

/// A word with an instant since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordEntry {
    pub(super) fingerprint: u64,
    pub(super) at: u64,
    pub(super) small: u64,
}

/// An overflow bucket, and the keys that it charged.
pub(super) type OverflowEntry = (KeptRecord, Option<ChargedKeys>);

impl WordEntry {
    /// Returns the entry of a word of a store that began at `epoch`.
    pub(super) fn of(fingerprint: u64, word: u64, epoch: u64) -> Self {
        Self {
            fingerprint,
            at: epoch.saturating_add(word::instant(word)),
            small: word::small(word),
        }
    }

    /// Writes the entry.
    pub(super) fn put(self, out: &mut Vec<u8>) {
        put_numbers(out, [self.fingerprint, self.at]);
        let small = u16::try_from(self.small).unwrap_or(u16::MAX);
        out.extend(small.to_le_bytes());
    }
}

/// Writes a record, its state as numbers that need no quota.
pub(super) fn put_record(out: &mut Vec<u8>, record: &KeptRecord) {
    put_numbers(
        out,
        [
            record.fingerprint,
            record.fresh_at.as_micros(),
            record.basis_code,
            record.period_us,
        ],
    );
    let mut numbers = Vec::new();
    let code = record.bucket.to_numbers(&mut |number| numbers.push(number));
    out.push(code);
    put_length(out, numbers.len());
    put_numbers(out, numbers);
}

/// Writes an overflow bucket, and the filters of its keys.
pub(super) fn put_overflow(out: &mut Vec<u8>, (record, charged): &OverflowEntry) {
    put_record(out, record);
    out.push(u8::from(charged.is_some()));
    for (bits, until) in charged.iter().flat_map(ChargedKeys::to_numbers) {
        put_numbers(out, bits);
        put_numbers(out, [until]);
    }
}

/// Writes a member of a set with its end, or a name with its count.
pub(super) fn put_member(out: &mut Vec<u8>, (member, end): &KeptMember) {
    put_text(out, member);
    put_numbers(out, [*end]);
}

/// Writes the head of a block of counts.
pub(super) fn put_counts(out: &mut Vec<u8>, name: &str, counts: &KeptCounts) {
    put_text(out, name.as_bytes());
    let ends = [counts.lasts_until, counts.period_end];
    put_numbers(out, ends.map(|end| end.map_or(NEVER, Timestamp::as_micros)));
}

pub(super) fn put_count(out: &mut Vec<u8>, is_closing: bool, count: &KeptMember) {
    out.push(u8::from(is_closing));
    put_member(out, count);
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_length(out, text.len());
    out.extend(text);
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_numbers(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        out.extend(number.to_le_bytes());
    }
}

/// Reads entries. `None` means that they are not as the writer leaves them.
pub(super) struct EntryReader<'a>(pub(super) &'a [u8]);

impl<'a> EntryReader<'a> {
    /// Returns true if no entry is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a word.
    pub(super) fn word(&mut self) -> Option<WordEntry> {
        Some(WordEntry {
            fingerprint: self.number()?,
            at: self.number()?,
            small: u64::from(u16::from_le_bytes(self.array()?)),
        })
        .filter(|word| word.fingerprint != 0 && word.small < word::SMALL_END)
    }

    /// Reads a record. Its basis is not checked.
    pub(super) fn record(&mut self) -> Option<KeptRecord> {
        let (fingerprint, fresh_at) = (self.number()?, self.number()?);
        let (basis_code, period_us) = (self.number()?, self.number()?);
        let [code] = self.array()?;
        let count = self.length()?;
        let bytes = self.take(count.checked_mul(8)?)?;
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
        Some(KeptRecord {
            fingerprint,
            fresh_at: Timestamp::from_micros(fresh_at),
            basis_code,
            period_us,
            bucket: Bucket::from_numbers(code, &numbers)?,
        })
        .filter(|record| record.fingerprint != 0)
    }

    /// Reads an overflow bucket.
    pub(super) fn overflow(&mut self) -> Option<OverflowEntry> {
        let record = self.record()?;
        match self.array()? {
            [0] => Some((record, None)),
            [1] => {
                let filters = [self.filter()?, self.filter()?];
                Some((record, Some(ChargedKeys::from_numbers(filters))))
            }
            _ => None,
        }
    }

    fn filter(&mut self) -> Option<([u64; WORDS], u64)> {
        let mut bits = [0; WORDS];
        for word in &mut bits {
            *word = self.number()?;
        }
        Some((bits, self.number()?))
    }

    /// Reads the name of a set or of a map.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        str::from_utf8(self.text()?).ok()
    }

    /// Reads a member of a set with its end, or a name with its count.
    pub(super) fn member(&mut self) -> Option<KeptMember> {
        Some((self.text()?.to_vec(), self.number()?))
    }

    /// Reads the ends of a map of counts.
    pub(super) fn ends(&mut self) -> Option<[Option<Timestamp>; 2]> {
        let ends = [self.number()?, self.number()?];
        Some(ends.map(|end| (end != NEVER).then(|| Timestamp::from_micros(end))))
    }

    pub(super) fn count(&mut self) -> Option<(bool, KeptMember)> {
        let is_closing = match self.array()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some((is_closing, self.member()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}
