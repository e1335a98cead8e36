//! Encoding of numbers and texts, each with a variable length.

/// Appends a number: seven bits per byte, lowest first.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends bytes, after their count.
pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes them. Missing bytes and overflow are `None`.
pub(super) struct PayloadReader<'a>(pub(super) &'a [u8]);

impl<'a> PayloadReader<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            let shifted = low << shift;
            if shifted >> shift != low {
                return None;
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number that is a count or a length.
    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// Returns true if nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_values_are_read_back(
            numbers in prop::collection::vec(any::<u64>(), 0..20),
            text in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut out = Vec::new();
            for number in &numbers {
                push_number(&mut out, *number);
            }
            push_bytes(&mut out, &text);
            let mut bytes = PayloadReader(&out);
            for number in numbers {
                prop_assert_eq!(bytes.number(), Some(number));
            }
            prop_assert_eq!(bytes.bytes(), Some(&*text));
            prop_assert!(bytes.is_at_end() && bytes.byte().is_none());
        }

        #[test]
        fn reading_any_bytes_terminates(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut left = PayloadReader(&bytes);
            while left.number().is_some() || left.bytes().is_some() {}
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_rejected() {
        assert_eq!(PayloadReader(&[0xff; 11]).number(), None);
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(PayloadReader(&most).number(), Some(u64::MAX));
        most[9] = 2;
        assert_eq!(PayloadReader(&most).number(), None);
    }
}
