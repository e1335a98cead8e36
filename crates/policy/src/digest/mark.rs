//! The digest of a text: 96 unpredictable bits.
//!
//! A digest stands for its text, so no client may be able to choose two texts with equal digests. The digests
//! are *strongly universal* (multilinear hashing, Lemire and Kaser 2014): with keys drawn at random,
//!
//! ```text
//! hash(words) = (key 0 + key 1 · word 1 + key 2 · word 2 + …  mod 2¹²⁸) div 2⁶⁴
//! ```
//!
//! has the same value for two given texts of 64-bit words with a probability of 2⁻⁶⁴; this is proven. Two
//! such hashes with separate keys make 128 bits, of which 96 are kept. The probability that an unlisted text
//! is taken for one of ten million members is therefore below 2⁻⁷². A response reveals only that no collision
//! occurred, so repeated attempts gain nothing beyond the sum of their probabilities.
//!
//! The keys belong to this process. Neither keys nor digests ever leave it.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The maximum length of a text with a digest.
pub(crate) const TEXT_BYTES_MAX: usize = 1_024;

/// The number of words in such a text, including the terminator.
const WORDS: usize = TEXT_BYTES_MAX / size_of::<u64>() + 1;

/// The digest of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextDigest {
    pub(super) high: u64,
    pub(super) low: u32,
}

/// The keys of two hashes, interleaved.
struct DigestKeys {
    /// The initial values of the sums.
    start: [u128; 2],
    /// The factors of the words.
    words: [[u128; 2]; WORDS],
}

/// One set of keys for all lookups, so that a text in several lookups is hashed once.
static KEYS: LazyLock<DigestKeys> = LazyLock::new(|| {
    // Keyed by the system's randomness. Its values for different inputs are as good as random draws.
    let drawn = RandomState::new();
    let key = |nth: usize| {
        let [high, low] = [0, 1].map(|half| u128::from(drawn.hash_one((nth, half))));
        (high << 64) | low
    };
    let pair = |nth: usize| [key(nth), key(nth.wrapping_add(WORDS + 1))];
    DigestKeys {
        start: pair(WORDS),
        words: std::array::from_fn(pair),
    }
});

impl TextDigest {
    /// Returns the digest of a text, or `None` if the text is longer than [`TEXT_BYTES_MAX`].
    #[inline]
    pub(crate) fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() > TEXT_BYTES_MAX {
            return None;
        }
        let keys = &*KEYS;
        let (words, rest) = bytes.as_chunks();
        let (of_words, of_last) = keys.words.split_at_checked(words.len())?;
        let mut sums = keys.start;
        for (word, key) in words.iter().zip(of_words) {
            sums = add(sums, u64::from_le_bytes(*word), key);
        }
        sums = add(sums, last_word(bytes, rest), of_last.first()?);
        let [one, other] = sums.map(|sum| u64::try_from(sum >> 64).unwrap_or(0));
        Some(Self {
            high: one,
            low: u32::try_from(other >> 32).unwrap_or(0),
        })
    }

    /// Returns a well-mixed number, always the same for the same digest, that selects its position in tables.
    #[inline]
    pub(super) fn spread(self) -> u64 {
        // Consecutive texts have digests at even distances. That does not weaken the digests, but it would
        // fill a table unevenly; folding a product breaks the pattern.
        let product = u128::from(self.high ^ u64::from(self.low)) * 0x9E37_79B9_7F4A_7C15_u128;
        u64::try_from((product >> 64) ^ (product & u128::from(u64::MAX))).unwrap_or(0)
    }
}

#[inline]
fn add([one, other]: [u128; 2], word: u64, [first, second]: &[u128; 2]) -> [u128; 2] {
    let word = u128::from(word);
    [
        one.wrapping_add(first.wrapping_mul(word)),
        other.wrapping_add(second.wrapping_mul(word)),
    ]
}

/// Returns the last bytes of a text, `rest`, which are fewer than a word, followed by a one bit. The bit
/// marks the end of the text, so texts that differ only in trailing zeros differ here.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 1;
    }
    // For a longer text, read a whole word at once and shift out the bytes before the rest.
    if let Some(word) = bytes.last_chunk() {
        let bits = u32::try_from(rest.len()).unwrap_or(0).wrapping_mul(8);
        let before = u64::BITS.wrapping_sub(bits);
        return u64::from_le_bytes(*word).unbounded_shr(before) | 1_u64.unbounded_shl(bits);
    }
    let rest = rest.iter().rev();
    rest.fold(1, |word, byte| (word << 8) | u64::from(*byte))
}

/// Maps `spread` evenly to an index below `count`.
#[inline]
pub(super) fn part_of(spread: u64, count: usize) -> usize {
    let count = u128::try_from(count).unwrap_or(0);
    usize::try_from((u128::from(spread) * count) >> 64).unwrap_or(0)
}
