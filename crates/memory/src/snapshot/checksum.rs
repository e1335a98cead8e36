//! CRC-64 (the one of xz): finds every change of a few bits, and of a few neighbouring bytes.

/// The polynomial, bits reversed.
const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;

/// The remainder of each byte.
static TABLE: [u64; 256] = table();

/// A checksum so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crc64(u64);

impl Crc64 {
    /// The checksum of no bytes.
    pub(super) const EMPTY: Self = Self(u64::MAX);

    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let low = usize::try_from((self.0 ^ u64::from(*byte)) & 0xff).unwrap_or(0);
            self.0 = self.0 >> 8 ^ TABLE.get(low).copied().unwrap_or(0);
        }
    }

    /// Returns the checksum of all bytes so far.
    pub(super) fn value(self) -> u64 {
        !self.0
    }
}

/// Returns the remainders of all bytes.
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated by the compiler, which finds an index out of range"
)]
const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u64;
    while byte < 256 {
        let (mut crc, mut bit) = (byte, 0);
        while bit < 8 {
            let low = crc & 1;
            crc >>= 1;
            if low == 1 {
                crc ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Crc64;

    #[test]
    fn the_checksum_is_that_of_other_programs() {
        let mut crc = Crc64::EMPTY;
        assert_eq!(crc.value(), 0);
        crc.add(b"1234");
        crc.add(b"56789");
        assert_eq!(crc.value(), 0x995d_c9bb_df19_39fa);
    }
}
