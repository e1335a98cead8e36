//! What a text is known by: 96 bits that nobody can foresee.
//!
//! A mark stands for its text, so two texts must not have the same one, whoever chooses them. The marks
//! are *strongly universal* (multilinear hashing, Lemire and Kaser 2014): with keys drawn at random,
//!
//! ```text
//! hash(words) = (key 0 + key 1 · word 1 + key 2 · word 2 + …  mod 2¹²⁸) div 2⁶⁴
//! ```
//!
//! has the same value for two given texts of 64-bit words with a probability of 2⁻⁶⁴, and that is
//! proven, not hoped for. Two of them with keys of their own make 128 bits, of which 96 are kept. A
//! stranger is thus taken for one of ten million members with a probability below 2⁻⁷²; and as an answer
//! says no more than that there was no such mishap, trying again and again gains nothing beyond the sum.
//!
//! The keys are this process's own and are told to nobody, nor is any mark.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The longest text that has a mark.
pub(crate) const TEXT_BYTES_MAX: usize = 1_024;

/// The words of such a text, with what ends it.
const WORDS: usize = TEXT_BYTES_MAX / size_of::<u64>() + 1;

/// What a text is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextDigest {
    pub(super) high: u64,
    pub(super) low: u32,
}

/// Keys of two hashes, side by side.
struct DigestKeys {
    /// What a hash begins with.
    start: [u128; 2],
    /// What each word is multiplied by.
    words: [[u128; 2]; WORDS],
}

/// One set for all that is looked up, so that a text that is looked up twice is marked once.
static KEYS: LazyLock<DigestKeys> = LazyLock::new(|| {
    // Keyed by the system's randomness; its values for different numbers are as good as drawn.
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
    /// The mark of a text; `None` of one that is longer than any that is kept.
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

    /// A number that looks drawn, the same for the same mark: where it is to be looked for.
    #[inline]
    pub(super) fn spread(self) -> u64 {
        // Texts that follow one another have marks at even distances. That is no weakness of theirs, but
        // it would fill a table unevenly; folding a product breaks it up.
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

/// The last bytes of a text, `rest`, which are fewer than a word, and a one behind them: it tells where
/// the text ends, and so keeps those apart that differ in zeros alone.
#[inline]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if rest.is_empty() {
        return 1;
    }
    // Of a longer text a whole word is read at once, and what stands before the rest is shifted out.
    if let Some(word) = bytes.last_chunk() {
        let bits = u32::try_from(rest.len()).unwrap_or(0).wrapping_mul(8);
        let before = u64::BITS.wrapping_sub(bits);
        return u64::from_le_bytes(*word).unbounded_shr(before) | 1_u64.unbounded_shl(bits);
    }
    let rest = rest.iter().rev();
    rest.fold(1, |word, byte| (word << 8) | u64::from(*byte))
}

/// The part of `count` that `spread` falls into, of as many as it may be.
#[inline]
pub(super) fn part_of(spread: u64, count: usize) -> usize {
    let count = u128::try_from(count).unwrap_or(0);
    usize::try_from((u128::from(spread) * count) >> 64).unwrap_or(0)
}
