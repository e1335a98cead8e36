//! Fields, appended to a buffer.
//!
//! A nested message is preceded by its length. Tidegate's messages are small: one byte is reserved for the
//! length. A longer message is moved, which is rare and cheap.

use super::kind;

/// The buffer of a message that is being written.
pub type MessageBuffer = Vec<u8>;

/// Writes a number unless it is zero: an absent number means zero.
#[inline]
pub fn number(out: &mut MessageBuffer, field: u32, value: u64) {
    if value != 0 {
        tag(out, field, kind::VARINT);
        varint(out, value);
    }
}

/// Writes text or bytes unless they are empty.
#[inline]
pub fn bytes(out: &mut MessageBuffer, field: u32, value: &[u8]) {
    if !value.is_empty() {
        element(out, field, value);
    }
}

/// Writes an element of a list or of a oneof, even if it is empty.
#[inline]
pub fn element(out: &mut MessageBuffer, field: u32, value: &[u8]) {
    tag(out, field, kind::BYTES);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes a nested message with the function `write`.
#[inline]
pub fn message(out: &mut MessageBuffer, field: u32, write: impl FnOnce(&mut MessageBuffer)) {
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

/// Replaces the one byte reserved for `length`.
#[cold]
fn lengthen(out: &mut MessageBuffer, at: usize, length: usize) {
    let mut written = Vec::with_capacity(10);
    varint(&mut written, length as u64);
    out.splice(at..=at, written);
}

#[inline]
fn tag(out: &mut MessageBuffer, field: u32, kind: u64) {
    varint(out, (u64::from(field) << 3) | kind);
}

#[inline]
pub(crate) fn varint(out: &mut MessageBuffer, mut value: u64) {
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
