//! Message framing: a prefix of five bytes has a compression flag and the length.

use super::status::{GrpcCode, GrpcStatus};
use bytes::{Buf, Bytes};

/// The length of the prefix before a message.
pub(super) const PREFIX: usize = 5;

/// Begins a message, with room for the prefix.
#[inline]
pub(super) fn begin(capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(PREFIX.saturating_add(capacity));
    out.extend_from_slice(&[0; PREFIX]);
    out
}

/// Completes the prefix of a message that was written after [`begin`].
#[inline]
pub(super) fn finish(mut out: Vec<u8>) -> Bytes {
    let length = out.len().saturating_sub(PREFIX);
    // No message that is written here comes near four gigabytes.
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(1..PREFIX) {
        place.copy_from_slice(&length);
    }
    out.into()
}

/// Returns the framed message that `write` writes.
pub(super) fn frame(capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = begin(capacity);
    write(&mut out);
    finish(out)
}

/// Splits the first message off `bytes`. Returns `None` if it is incomplete.
pub(super) fn next(bytes: &mut Bytes, bytes_max: usize) -> Result<Option<Bytes>, GrpcStatus> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(GrpcStatus::new(
            GrpcCode::Unimplemented,
            "compressed messages are not supported",
        ));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(GrpcStatus::new(
            GrpcCode::ResourceExhausted,
            format!("a message may have {bytes_max} bytes"),
        ));
    }
    if rest.len() < length {
        return Ok(None);
    }
    bytes.advance(PREFIX);
    Ok(Some(bytes.split_to(length)))
}

/// Returns the only message of a body.
pub(super) fn only(body: &[u8]) -> Result<&[u8], GrpcStatus> {
    let wrong = |why: &'static str| Err(GrpcStatus::new(GrpcCode::InvalidArgument, why));
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX>() else {
        return wrong("the message is missing or truncated");
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(GrpcStatus::new(
            GrpcCode::Unimplemented,
            "compressed messages are not supported",
        ));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    match message.len() {
        found if found < length => wrong("the message is truncated"),
        found if found > length => wrong("there is more than one message"),
        _ => Ok(message),
    }
}
