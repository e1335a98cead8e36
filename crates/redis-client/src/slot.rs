//! The Cluster slot of a key.

/// The number of slots of a Cluster.
pub const SLOTS: u16 = 16_384;

/// Returns the slot of a key: that of its hash tag, if it has one.
///
/// # Examples
///
/// ```
/// use tidegate_redis_client::slot;
///
/// assert_eq!(slot(b"foo"), 12_182);
/// assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
/// ```
pub fn slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// Returns the text between the first `{` and the next `}`, if there is any; else the whole key.
fn hash_tag(key: &[u8]) -> &[u8] {
    let inside = || {
        let open = key.iter().position(|byte| *byte == b'{')?;
        let rest = key.get(open.checked_add(1)?..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    };
    inside().unwrap_or(key)
}

/// CRC-16/XMODEM, as the Cluster specification has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let at = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ CRC_TABLE.get(at).copied().unwrap_or_default()
    })
}

/// The CRC of each byte.
static CRC_TABLE: [u16; 256] = crc_table();

/// Computes the table at compile time.
const fn crc_table() -> [u16; 256] {
    let mut table = [0_u16; 256];
    let mut byte = 0_u16;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "a constant; it would not compile")]
        {
            table[byte as usize] = crc;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{crc16, slot};

    #[test]
    fn the_slot_is_that_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"), "an empty tag is no tag");
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }
}
