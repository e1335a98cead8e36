//! Kuadrant's `Reserve` and `Commit`: what is asked, borrowed from the bytes that it came in, and what
//! is answered.
//!
//! Both name a domain and descriptors by the same fields as a `RateLimitRequest`.

use super::read::{Descriptors, RlsCall};
use super::write::RlsCode;
use crate::wire::protobuf::read::{Malformed, WireFields};
use crate::wire::protobuf::write;
use std::fmt;
use std::time::Duration;

/// `ReserveRequest`: what is to be reserved.
#[derive(Clone, Debug, Default)]
pub struct Reserve<'a> {
    call: RlsCall<'a>,
    /// How much, by estimate.
    pub amount: u64,
    ttl: Option<Length>,
}

/// `CommitRequest`: what was used in the end.
#[derive(Clone, Default)]
pub struct Commit<'a> {
    call: RlsCall<'a>,
    /// The id of the reservation; empty where there was none.
    pub reservation: &'a str,
    /// How much was used.
    pub actual: u64,
}

/// A `google.protobuf.Duration`, as it was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    seconds: u64,
    nanos: u32,
}

const NO_TIME: Malformed = Malformed("a ttl must be a length of time, of a microsecond or more");

impl<'a> Reserve<'a> {
    /// Reads a message.
    pub fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut asked = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                3 => asked.amount = value.varint()?,
                4 => asked.ttl = Some(length(asked.ttl, value.bytes()?)?),
                _ => asked.call.shared(number, value)?,
            }
        }
        Ok(asked)
    }

    /// Whose limits.
    pub fn domain(&self) -> &'a str {
        self.call.domain
    }

    /// The descriptors as the limiter takes them, or what is wrong with the call.
    pub fn descriptors(&self) -> Result<Descriptors<'_>, Malformed> {
        self.call.descriptors_at(self.amount)
    }

    /// How long it is to live, if that was told.
    pub fn ttl(&self) -> Result<Option<Duration>, Malformed> {
        self.ttl.map(Length::told).transpose()
    }
}

impl<'a> Commit<'a> {
    /// Reads a message.
    pub fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut told = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                3 => told.reservation = value.text()?,
                4 => told.actual = value.varint()?,
                _ => told.call.shared(number, value)?,
            }
        }
        Ok(told)
    }

    /// Whose limits.
    pub fn domain(&self) -> &'a str {
        self.call.domain
    }

    /// The descriptors as the limiter takes them, or what is wrong with the call.
    pub fn descriptors(&self) -> Result<Descriptors<'_>, Malformed> {
        self.call.descriptors_at(self.actual)
    }
}

impl Length {
    fn told(self) -> Result<Duration, Malformed> {
        // Below zero, both are larger than any that is not.
        if i64::try_from(self.seconds).is_err() || self.nanos >= 1_000_000_000 {
            return Err(NO_TIME);
        }
        let length = Duration::new(self.seconds, self.nanos);
        if length < Duration::from_micros(1) {
            return Err(NO_TIME);
        }
        Ok(length)
    }
}

fn length(before: Option<Length>, message: &[u8]) -> Result<Length, Malformed> {
    let mut length = before.unwrap_or_default();
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => length.seconds = value.varint()?,
            2 => length.nanos = value.narrow()?,
            _ => {}
        }
    }
    Ok(length)
}

/// Appends a `ReserveResponse`: whether it may pass and, if it may and anything was reserved, the id.
pub fn reserved(out: &mut Vec<u8>, code: RlsCode, id: Option<&str>) {
    write::number(out, 1, code.number().into());
    write::bytes(out, 2, id.unwrap_or_default().as_bytes());
}

/// Appends a `CommitResponse`: whether a reservation was settled.
pub fn committed(out: &mut Vec<u8>, is_released: bool) {
    write::number(out, 1, is_released.into());
}

// By hand: whoever has the id can settle.
impl fmt::Debug for Commit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit")
            .field("call", &self.call)
            .field("actual", &self.actual)
            .finish_non_exhaustive()
    }
}
