//! Classes of bytes.

/// Returns true if a byte may be part of a method or a header's name.
#[inline]
pub(super) fn is_token(byte: u8) -> bool {
    // The table covers all values of the index, so there is no bounds check.
    TOKEN.get(usize::from(byte)).is_some_and(|is| *is)
}

/// Returns the number of leading bytes that may be part of a method or a header's name.
#[inline]
pub(super) fn tokens_in(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|byte| !is_token(*byte));
    end.unwrap_or(bytes.len())
}

/// Returns the number of leading bytes that may be part of a target: neither spaces nor controls. The rest is
/// checked by the parser of targets.
#[inline]
pub(super) fn target_in(bytes: &[u8]) -> usize {
    first(bytes, |word| {
        let without_delete = word ^ all(0x7f);
        below(word, 0x21) | below(without_delete, 1)
    })
}

/// Returns the number of bytes before the first control character.
#[inline]
pub(super) fn text_in(bytes: &[u8]) -> usize {
    first(bytes, |word| below(word, 0x20))
}

/// Returns the number of bytes before the first that `hits` marks, in its highest bit. Eight at a time: a
/// line is short, and calling a library function would take longer than reading it.
#[inline]
fn first(bytes: &[u8], hits: impl Fn(u64) -> u64) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut before = 0_usize;
    for word in words {
        let marked = hits(u64::from_le_bytes(*word));
        if marked != 0 {
            // Fewer than eight.
            return before.saturating_add(marked.trailing_zeros() as usize / 8);
        }
        before = before.saturating_add(8);
    }
    // Mark the missing bytes of the last word, so that they are the end.
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(rest) {
        *to = *from;
    }
    let marked = hits(u64::from_le_bytes(word)) | END.get(rest.len()).copied().unwrap_or(0);
    before.saturating_add(marked.trailing_zeros() as usize / 8)
}

/// Words in which the byte at their index is marked.
const END: [u64; 8] = [
    0x80,
    0x80 << 8,
    0x80 << 16,
    0x80 << 24,
    0x80 << 32,
    0x80 << 40,
    0x80 << 48,
    0x80 << 56,
];

/// Marks bytes that are less than `least`, which is at most 128. The first mark is correct; later ones may
/// not be.
#[inline]
fn below(word: u64, least: u8) -> u64 {
    word.wrapping_sub(all(least)) & !word & all(0x80)
}

#[inline]
fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Removes spaces and tabs at both ends.
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Parses a number that consists of digits only, few enough to fit.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    const DIGITS_MAX: usize = 19;
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte & 0x0f)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Returns the value of a hexadecimal digit.
pub(super) fn hexadecimal(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

static TOKEN: [bool; 256] = tokens();

const fn tokens() -> [bool; 256] {
    let mut tokens = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x7f {
        let is = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        // Evaluated at compile time: a wrong index would not compile.
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            tokens[byte as usize] = is;
        }
        byte += 1;
    }
    tokens
}
