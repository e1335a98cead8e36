//! Kuadrant's `Reserve` and `Commit`: requests, borrowed from their bytes, and responses.
//!
//! Both have a domain and descriptors in the same fields as a `RateLimitRequest`.

use super::read::{Descriptors, RlsCall};
use super::write::RlsCode;
use crate::wire::protobuf::read::{ProtobufError, WireFields};
use crate::wire::protobuf::write;
use std::fmt;
use std::time::Duration;

/// `ReserveRequest`: a reservation request.
#[derive(Clone, Debug, Default)]
pub struct Reserve<'a> {
    call: RlsCall<'a>,
    /// The estimated amount.
    pub amount: u64,
    ttl: Option<Length>,
}

/// `CommitRequest`: the final amount of a reservation.
#[derive(Clone, Default)]
pub struct Commit<'a> {
    call: RlsCall<'a>,
    /// The id of the reservation; empty if there was none.
    pub reservation: &'a str,
    /// The amount used.
    pub actual: u64,
}

/// A `google.protobuf.Duration`, as it was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    seconds: u64,
    nanos: u32,
}

const NO_TIME: ProtobufError = ProtobufError("a ttl must be at least one microsecond");

impl<'a> Reserve<'a> {
    /// Reads a message.
    pub fn read(message: &'a [u8]) -> Result<Self, ProtobufError> {
        let mut asked = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                3 => asked.amount = value.varint()?,
                4 => asked.ttl = Some(length(asked.ttl, value.bytes()?)?),
                _ => asked.call.shared(number, value)?,
            }
        }
        Ok(asked)
    }

    /// Returns the domain, which selects the policy.
    pub fn domain(&self) -> &'a str {
        self.call.domain
    }

    /// Returns the descriptors for the limiter, or an error if the call is invalid.
    pub fn descriptors(&self) -> Result<Descriptors<'_>, ProtobufError> {
        self.call.descriptors_at(self.amount)
    }

    /// Returns the requested lifetime, if there is one. Returns an error if it is not positive.
    pub fn ttl(&self) -> Result<Option<Duration>, ProtobufError> {
        self.ttl.map(Length::to_duration).transpose()
    }
}

impl<'a> Commit<'a> {
    /// Reads a message.
    pub fn read(message: &'a [u8]) -> Result<Self, ProtobufError> {
        let mut request = Self::default();
        let mut fields = WireFields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                3 => request.reservation = value.text()?,
                4 => request.actual = value.varint()?,
                _ => request.call.shared(number, value)?,
            }
        }
        Ok(request)
    }

    /// Returns the domain, which selects the policy.
    pub fn domain(&self) -> &'a str {
        self.call.domain
    }

    /// Returns the descriptors for the limiter, or an error if the call is invalid.
    pub fn descriptors(&self) -> Result<Descriptors<'_>, ProtobufError> {
        self.call.descriptors_at(self.actual)
    }
}

impl Length {
    fn to_duration(self) -> Result<Duration, ProtobufError> {
        // Negative values, read as unsigned, exceed these bounds.
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

fn length(before: Option<Length>, message: &[u8]) -> Result<Length, ProtobufError> {
    let mut length = before.unwrap_or_default();
    let mut fields = WireFields::of(message);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => length.seconds = value.varint()?,
            2 => length.nanos = value.narrow()?,
            _ => {}
        }
    }
    Ok(length)
}

/// Appends a `ReserveResponse`: the code and, if the call may pass and anything was reserved, the id.
pub fn reserved(out: &mut Vec<u8>, code: RlsCode, id: Option<&str>) {
    write::number(out, 1, code.number().into());
    write::bytes(out, 2, id.unwrap_or_default().as_bytes());
}

/// Appends a `CommitResponse`: true if a reservation was settled.
pub fn committed(out: &mut Vec<u8>, is_released: bool) {
    write::number(out, 1, is_released.into());
}

// Implemented by hand: the id is enough to settle.
impl fmt::Debug for Commit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit")
            .field("call", &self.call)
            .field("actual", &self.actual)
            .finish_non_exhaustive()
    }
}
