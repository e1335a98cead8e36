//! The part of DER that public keys need.

/// INTEGER.
pub(super) const INTEGER: u8 = 0x02;
/// BIT STRING.
pub(super) const BIT_STRING: u8 = 0x03;
/// OBJECT IDENTIFIER.
pub(super) const OBJECT: u8 = 0x06;
/// SEQUENCE.
pub(super) const SEQUENCE: u8 = 0x30;

/// Takes the next element off `input` if its tag is `tag`, and returns its content.
pub(super) fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, rest) = input.split_first()?;
    if *found != tag {
        return None;
    }
    let (length, rest) = length(rest)?;
    let (content, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(content)
}

/// Takes the only element and returns its content. Returns `None` if anything follows it.
pub(super) fn take_only(mut input: &[u8], tag: u8) -> Option<&[u8]> {
    let content = take(&mut input, tag)?;
    input.is_empty().then_some(content)
}

/// Returns the bytes of a bit string without unused bits.
pub(super) fn bits(content: &[u8]) -> Option<&[u8]> {
    content.strip_prefix(&[0])
}

/// Parses a length and returns it with the remaining input.
fn length(input: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = input.split_first()?;
    match first {
        0..=0x7f => Some((usize::from(*first), rest)),
        0x81 | 0x82 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            let long = bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            Some((long, rest))
        }
        // No key is longer than 64 KiB.
        _ => None,
    }
}
