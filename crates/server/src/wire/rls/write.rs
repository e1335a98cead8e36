//! `RateLimitResponse`.

use super::unit;
use crate::wire::protobuf::write::{self, Out};

/// What came of a call or a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlsCode {
    /// It may pass.
    Ok,
    /// It may not.
    OverLimit,
}

/// What is told of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorStatus<'a> {
    /// Whether it may pass.
    pub code: RlsCode,
    /// The limit that is told of, if one applied.
    pub limit: Option<CurrentLimit<'a>>,
    /// Whole units left.
    pub remaining: u32,
}

/// A limit, as far as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLimit<'a> {
    /// How many a period.
    pub amount: u32,
    /// The period, in microseconds.
    pub period_us: u64,
    /// What it is called; empty where that is not told.
    pub name: &'a str,
    /// Seconds until things look better.
    pub reset_s: u64,
}

/// Appends a status for each descriptor, and before them the code of all.
pub fn code(out: &mut Vec<u8>, overall: RlsCode) {
    write::number(out, 1, overall.number().into());
}

/// Appends what is told of the next descriptor.
pub fn status(out: &mut Vec<u8>, status: &DescriptorStatus<'_>) {
    write::message(out, 2, |out| status.write(out));
}

/// Appends a header that goes to the client of the proxy.
pub fn response_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    write::message(out, 3, |out| {
        write::bytes(out, 1, name.as_bytes());
        // A string has to be UTF-8; what is not has a field of its own.
        let field = if std::str::from_utf8(value).is_ok() {
            2
        } else {
            3
        };
        write::bytes(out, field, value);
    });
}

/// Appends the body that the client of the proxy is shown.
pub fn raw_body(out: &mut Vec<u8>, body: &[u8]) {
    write::bytes(out, 5, body);
}

impl RlsCode {
    /// Its number in protobuf. There is a third, 0, "unknown", which is never sent.
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 1,
            Self::OverLimit => 2,
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::OverLimit => "OVER_LIMIT",
        }
    }
}

impl DescriptorStatus<'_> {
    fn write(&self, out: &mut Out) {
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
    /// The number of the unit that its period is; 0, "unknown", where it is none.
    pub(super) fn unit(&self) -> u32 {
        unit::of_period(self.period_us).map_or(0, |unit| unit.number)
    }

    fn write(&self, out: &mut Out) {
        write::number(out, 1, self.amount.into());
        write::number(out, 2, self.unit().into());
        write::bytes(out, 3, self.name.as_bytes());
    }
}
