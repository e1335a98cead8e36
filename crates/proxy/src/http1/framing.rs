//! The framing of a response body, from its headers.

use crate::fault::Http1Fault;

/// The framing fields of a response, and their number.
#[derive(Debug, Default)]
pub(super) struct FramingFields {
    length: Option<u64>,
    lengths: usize,
    encodings: usize,
    /// True if there was a transfer encoding other than `chunked`.
    is_odd: bool,
}

/// The end of a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BodyExtent {
    Length(u64),
    Chunked,
    /// At the end of the connection.
    #[default]
    Close,
    /// Ambiguous. The client behind the gateway may read it in the other way.
    Doubtful,
}

impl FramingFields {
    /// Adds a `Content-Length`.
    pub(super) fn length(&mut self, value: &[u8]) -> Result<(), Http1Fault> {
        for one in value.split(|byte| *byte == b',') {
            let number =
                number(one.trim_ascii()).ok_or(Http1Fault::NotHttp("a length is not a number"))?;
            if self.length.is_some_and(|before| before != number) {
                return Err(Http1Fault::NotHttp("it has two lengths"));
            }
            self.length = Some(number);
            self.lengths = self.lengths.saturating_add(1);
        }
        Ok(())
    }

    /// Adds a `Transfer-Encoding`.
    pub(super) fn encoding(&mut self, value: &[u8]) {
        self.is_odd |= !value.eq_ignore_ascii_case(b"chunked");
        self.encodings = self.encodings.saturating_add(1);
    }

    /// Returns true if there was any transfer encoding.
    pub(super) fn has_encoding(&self) -> bool {
        self.encodings > 0
    }

    /// Returns the end of the body.
    pub(super) fn extent(&self) -> BodyExtent {
        match (self.lengths, self.encodings, self.length) {
            (0, 0, _) => BodyExtent::Close,
            (1, 0, Some(length)) => BodyExtent::Length(length),
            (0, 1, _) if !self.is_odd => BodyExtent::Chunked,
            _ => BodyExtent::Doubtful,
        }
    }
}

/// Parses a number that consists of digits only.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte & 0x0f)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
