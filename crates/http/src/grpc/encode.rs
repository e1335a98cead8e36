//! Encoding of a status: a few fields of protobuf, and percent-encoding.
//!
//! By hand: three messages with six fields between them, which have not changed in ten years, are
//! no reason for every program with a limit to build a protobuf library. Tests read the result with
//! one.

use std::time::Duration;

/// Type URL of `google.rpc.RetryInfo`.
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
/// The longest duration that protobuf has: ten thousand years.
const DELAY_MAX_S: u64 = 315_576_000_000;
/// Digits of percent-encoding.
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Returns a `google.rpc.Status`, with a `google.rpc.RetryInfo` if there is a wait.
pub(super) fn status(code: u8, message: &str, retry_after: Option<Duration>) -> Vec<u8> {
    let mut status = Vec::new();
    number(&mut status, 1, code.into());
    bytes(&mut status, 2, message.as_bytes());
    if let Some(wait) = retry_after {
        let mut delay = Vec::new();
        number(&mut delay, 1, wait.as_secs().min(DELAY_MAX_S));
        number(&mut delay, 2, wait.subsec_nanos().into());
        let mut info = Vec::new();
        bytes(&mut info, 1, &delay);
        let mut any = Vec::new();
        bytes(&mut any, 1, RETRY_INFO.as_bytes());
        bytes(&mut any, 2, &info);
        bytes(&mut status, 3, &any);
    }
    status
}

/// A field that holds a number; none if it is zero, as protobuf has it.
fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        out.push(field << 3);
        varint(out, value);
    }
}

/// A field that holds text or a message.
fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, u64::try_from(value.len()).unwrap_or(u64::MAX));
    out.extend_from_slice(value);
}

/// Appends a number as a protobuf varint.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

/// Encodes text for the header `grpc-message`: everything except plain ASCII is percent-encoded.
pub(super) fn percent(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            text.push(byte.into());
        } else {
            let digit = |bits: u8| HEX.get(usize::from(bits)).map(|digit| char::from(*digit));
            text.push('%');
            text.extend(digit(byte >> 4));
            text.extend(digit(byte & 0xf));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_percent_encoded() {
        assert_eq!(percent("wait 3 s."), "wait 3 s.");
        assert_eq!(percent("100 %\r\nü"), "100 %25%0D%0A%C3%BC");
    }

    #[test]
    fn a_varint_uses_seven_bits_per_byte() {
        for (value, expected) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
        ] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out, expected);
        }
    }
}
