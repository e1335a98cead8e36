//! Fields, appended to a buffer.
//!
//! A message within a message has its length before it. Ours are small: the length has room for one
//! byte kept, and what turns out longer is moved, which is seldom and costs little.

use super::kind;

/// A message while it is written.
pub(crate) type Out = Vec<u8>;

/// A number that is not zero: zero is what an absent one means.
#[inline]
pub(crate) fn number(out: &mut Out, field: u32, value: u64) {
    if value != 0 {
        tag(out, field, kind::VARINT);
        varint(out, value);
    }
}

/// Text or bytes that are not empty.
#[inline]
pub(crate) fn bytes(out: &mut Out, field: u32, value: &[u8]) {
    if !value.is_empty() {
        element(out, field, value);
    }
}

/// The same for one of a list, or of a choice, where an empty one counts.
#[inline]
pub(crate) fn element(out: &mut Out, field: u32, value: &[u8]) {
    tag(out, field, kind::BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// A message, which `write` writes.
#[inline]
pub(crate) fn message(out: &mut Out, field: u32, write: impl FnOnce(&mut Out)) {
    tag(out, field, kind::BYTES);
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len().saturating_sub(at).saturating_sub(1);
    match (u8::try_from(length), out.get_mut(at)) {
        (Ok(length), Some(place)) if length < 0x80 => *place = length,
        _ => lengthen(out, at, length),
    }
}

/// Puts `length` where one byte was kept for it.
#[cold]
fn lengthen(out: &mut Out, at: usize, length: usize) {
    let mut written = Vec::with_capacity(10);
    varint(&mut written, length as u64);
    out.splice(at..=at, written);
}

#[inline]
fn tag(out: &mut Out, field: u32, kind: u64) {
    varint(out, (u64::from(field) << 3) | kind);
}

#[inline]
pub(crate) fn varint(out: &mut Out, mut value: u64) {
    while value >= 0x80 {
        out.push(low_seven(value) | 0x80);
        value >>= 7;
    }
    out.push(low_seven(value));
}

#[inline]
fn low_seven(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low & 0x7f
}
