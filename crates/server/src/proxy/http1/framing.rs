//! Where an answer ends, by what its head says.

use super::fault::Fault;

/// What was said about where an answer ends, and in how many words.
#[derive(Debug, Default)]
pub(super) struct Said {
    length: Option<u64>,
    lengths: usize,
    encodings: usize,
    /// Whether something was said that is not done here.
    is_odd: bool,
}

/// Where an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Length(u64),
    Chunked,
    /// With the connection.
    Close,
    /// That can be read in two ways. Whoever stands behind us may take it as the other one.
    Doubtful,
}

impl Said {
    /// Takes in a `Content-Length`.
    pub(super) fn length(&mut self, value: &[u8]) -> Result<(), Fault> {
        for one in value.split(|byte| *byte == b',') {
            let number = number(one.trim_ascii()).ok_or(Fault::NotHttp("a length is no number"))?;
            if self.length.is_some_and(|before| before != number) {
                return Err(Fault::NotHttp("there are two lengths"));
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
    pub(super) fn extent(&self) -> Extent {
        match (self.lengths, self.encodings, self.length) {
            (0, 0, _) => Extent::Close,
            (1, 0, Some(length)) => Extent::Length(length),
            (0, 1, _) if !self.is_odd => Extent::Chunked,
            _ => Extent::Doubtful,
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
