//! Parses text that has digits at fixed positions.

use super::civil::Civil;

/// The remaining text.
pub(super) struct Digits<'a>(pub(super) &'a [u8]);

impl Digits<'_> {
    /// Parses exactly `count` digits.
    pub(super) fn number(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let digit = |value: u32, byte: &u8| {
            let digit = char::from(*byte).to_digit(10)?;
            value.checked_mul(10)?.checked_add(digit)
        };
        let value = digits.iter().try_fold(0, digit)?;
        self.0 = rest;
        Some(value)
    }

    /// Skips one of `bytes`, and returns it.
    pub(super) fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        let found = bytes.contains(first).then_some(*first)?;
        self.0 = rest;
        Some(found)
    }

    /// Parses an optional fraction of a second, in microseconds. Finer digits are dropped.
    pub(super) fn fraction_us(&mut self) -> Option<u32> {
        if self.one_of(b".,").is_none() {
            return Some(0);
        }
        let len = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        let padded = digits.iter().copied().chain([b'0'; 6]).take(6);
        let micros = padded.fold(0, |value, byte| value * 10 + u32::from(byte - b'0'));
        (len > 0).then_some(micros)
    }

    /// Parses the time of day, `22:13:20.123`; the other fields are still to be set.
    pub(super) fn time_of_day(&mut self) -> Option<Civil> {
        let hour = self.number(2)?;
        self.one_of(b":")?;
        let minute = self.number(2)?;
        self.one_of(b":")?;
        Some(Civil {
            hour,
            minute,
            second: self.number(2)?,
            micros: self.fraction_us()?,
            ..Civil::default()
        })
    }

    /// Parses the offset from UTC, `+01:00` or `-0730`, in minutes.
    pub(super) fn offset_minutes(&mut self) -> Option<i32> {
        let sign = if self.one_of(b"+-")? == b'+' { 1 } else { -1 };
        let hours = self.number(2)?;
        let _ = self.one_of(b":");
        let minutes = self.number(2)?;
        if hours > 23 || minutes > 59 {
            return None;
        }
        Some(sign * i32::try_from(hours * 60 + minutes).ok()?)
    }
}
