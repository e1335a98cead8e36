//! `RateLimitResponse`.

use super::unit;
use crate::wire::protobuf::write::{self, MessageBuffer};

/// The result of a call or a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlsCode {
    /// It may pass.
    Ok,
    /// It may not pass.
    OverLimit,
}

/// The response for one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorStatus<'a> {
    /// The result of this descriptor.
    pub code: RlsCode,
    /// The reported limit, if one applied.
    pub limit: Option<CurrentLimit<'a>>,
    /// Whole units left.
    pub remaining: u32,
}

/// The reported part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLimit<'a> {
    /// The amount per period.
    pub amount: u32,
    /// The period, in microseconds.
    pub period_us: u64,
    /// The limit's name; empty if it is not reported.
    pub name: &'a str,
    /// Seconds until the bucket is full; after a refusal, until the request would pass, or the window if it
    /// never can.
    pub reset_s: u64,
}

/// Appends the overall code, which comes before the statuses of the descriptors.
pub fn code(out: &mut Vec<u8>, overall: RlsCode) {
    write::number(out, 1, overall.number().into());
}

/// Appends the status of the next descriptor.
pub fn status(out: &mut Vec<u8>, status: &DescriptorStatus<'_>) {
    write::message(out, 2, |out| status.write(out));
}

/// Appends a header for the client of the proxy.
pub fn response_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    write::message(out, 3, |out| {
        write::bytes(out, 1, name.as_bytes());
        // A string has to be UTF-8; other bytes have a separate field.
        let field = if std::str::from_utf8(value).is_ok() {
            2
        } else {
            3
        };
        write::bytes(out, field, value);
    });
}

/// Appends the body for the client of the proxy.
pub fn raw_body(out: &mut Vec<u8>, body: &[u8]) {
    write::bytes(out, 5, body);
}

impl RlsCode {
    /// Returns the number in protobuf. There is a third, 0, "unknown", which is never sent.
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 1,
            Self::OverLimit => 2,
        }
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::OverLimit => "OVER_LIMIT",
        }
    }
}

impl DescriptorStatus<'_> {
    fn write(&self, out: &mut MessageBuffer) {
        write::number(out, 1, self.code.number().into());
        if let Some(limit) = &self.limit {
            write::message(out, 2, |out| limit.write(out));
        }
        write::number(out, 3, self.remaining.into());
        if let Some(limit) = &self.limit {
            write::message(out, 4, |out| write::number(out, 1, limit.reset_s));
        }
    }
}

impl CurrentLimit<'_> {
    /// Returns the number of the unit that equals the period; 0, "unknown", if there is none.
    pub fn unit(&self) -> u32 {
        unit::of_period(self.period_us).map_or(0, |unit| unit.number)
    }

    fn write(&self, out: &mut MessageBuffer) {
        write::number(out, 1, self.amount.into());
        write::number(out, 2, self.unit().into());
        write::bytes(out, 3, self.name.as_bytes());
    }
}
