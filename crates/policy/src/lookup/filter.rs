//! Whether a mark may be there at all, in a twentieth of the room.
//!
//! Most of those who are looked up in a list are not listed, and to find that out the list itself is too
//! large to be near. Here every mark has four bits in a block of 32 bytes, one in each quarter of it; of
//! whom not all four are set is not there. With a byte a mark, three in a hundred strangers have to be
//! looked up after all. With two it would be one in two hundred, and yet worse: what is twice as large is
//! less often near.

use super::mark::{TextDigest, part_of};

/// Bits for each mark.
const BITS: usize = 8;

type Block = [u64; 4];

/// Which marks may be there.
#[derive(Default)]
pub(crate) struct DigestFilter {
    blocks: Vec<Block>,
}

impl DigestFilter {
    /// Lets these marks pass, of which there are so many.
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

    /// Whether a mark may be there. If not, it is not.
    #[inline]
    pub(crate) fn may_have(&self, mark: TextDigest) -> bool {
        let nth = part_of(mark.spread(), self.blocks.len());
        let Some(block) = self.blocks.get(nth) else {
            return false;
        };
        // One branch, and not one for each quarter.
        let quarters = block.iter().zip(bits_of(mark));
        quarters.fold(0, |missing, (quarter, bit)| missing | (bit & !quarter)) == 0
    }

    /// How many bytes it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.capacity().saturating_mul(size_of::<Block>())
    }
}

/// The bits of a mark, one in each quarter of its block.
#[inline]
fn bits_of(mark: TextDigest) -> Block {
    [0, 6, 12, 18].map(|from| 1_u64.rotate_left((mark.low >> from) & 63))
}
