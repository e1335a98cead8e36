//! Where an answer ends, by what its head says.

use super::fault::Http1Fault;

/// What was said about where an answer ends, and in how many words.
#[derive(Debug, Default)]
pub(super) struct FramingFields {
    length: Option<u64>,
    lengths: usize,
    encodings: usize,
    /// Whether something was said that is not done here.
    is_odd: bool,
}

/// Where an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyExtent {
    Length(u64),
    Chunked,
    /// With the connection.
    Close,
    /// That can be read in two ways. Whoever stands behind us may take it as the other one.
    Doubtful,
}

impl FramingFields {
    /// Takes in a `Content-Length`.
    pub(super) fn length(&mut self, value: &[u8]) -> Result<(), Http1Fault> {
        for one in value.split(|byte| *byte == b',') {
            let number =
                number(one.trim_ascii()).ok_or(Http1Fault::NotHttp("a length is no number"))?;
            if self.length.is_some_and(|before| before != number) {
                return Err(Http1Fault::NotHttp("there are two lengths"));
            }
            self.length = Some(number);
            self.lengths = self.lengths.saturating_add(1);
        }
        Ok(())
    }

    /// Takes in a `Transfer-Encoding`.
    pub(super) fn encoding(&mut self, value: &[u8]) {
        self.is_odd |= !value.eq_ignore_ascii_case(b"chunked");
        self.encodings = self.encodings.saturating_add(1);
    }

    /// Whether any encoding was named.
    pub(super) fn has_encoding(&self) -> bool {
        self.encodings > 0
    }

    /// Where the answer ends.
    pub(super) fn extent(&self) -> BodyExtent {
        match (self.lengths, self.encodings, self.length) {
            (0, 0, _) => BodyExtent::Close,
            (1, 0, Some(length)) => BodyExtent::Length(length),
            (0, 1, _) if !self.is_odd => BodyExtent::Chunked,
            _ => BodyExtent::Doubtful,
        }
    }
}

/// The number that is written in digits and in nothing else.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte & 0x0f)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
