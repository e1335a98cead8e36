//! A filter for absent digests, in a twentieth of the memory.
//!
//! Most values that are looked up in a list are not listed, and the list itself is too large for the cache.
//! Here every digest sets four bits in a block of 32 bytes, one in each quarter. If not all four bits are
//! set, the digest is absent. With one byte per digest, 3 % of absent values still need a lookup. With two
//! bytes it would be 0.5 %, yet slower: a filter of twice the size is cached less often.

use super::mark::{TextDigest, part_of};

/// Bits per digest.
const BITS: usize = 8;

type Block = [u64; 4];

/// A Bloom filter of digests.
#[derive(Default)]
pub(crate) struct DigestFilter {
    blocks: Vec<Block>,
}

impl DigestFilter {
    /// Builds a filter that passes these digests. `count` is their number.
    pub(crate) fn of(marks: impl Iterator<Item = TextDigest>, count: usize) -> Self {
        let bits = count.saturating_mul(BITS);
        let blocks = bits.div_ceil(size_of::<Block>() * 8);
        let mut blocks = vec![Block::default(); blocks];
        for mark in marks {
            let nth = part_of(mark.spread(), blocks.len());
            if let Some(block) = blocks.get_mut(nth) {
                for (quarter, bit) in block.iter_mut().zip(bits_of(mark)) {
                    *quarter |= bit;
                }
            }
        }
        Self { blocks }
    }

    /// Returns false if the digest is certainly absent.
    #[inline]
    pub(crate) fn may_have(&self, mark: TextDigest) -> bool {
        let nth = part_of(mark.spread(), self.blocks.len());
        let Some(block) = self.blocks.get(nth) else {
            return false;
        };
        // One branch instead of one for each quarter.
        let quarters = block.iter().zip(bits_of(mark));
        quarters.fold(0, |missing, (quarter, bit)| missing | (bit & !quarter)) == 0
    }

    /// Returns its size in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.capacity().saturating_mul(size_of::<Block>())
    }
}

/// Returns the bits of a digest, one in each quarter of its block.
#[inline]
fn bits_of(mark: TextDigest) -> Block {
    [0, 6, 12, 18].map(|from| 1_u64.rotate_left((mark.low >> from) & 63))
}
