//! The header fields that determine how a request is read.

use super::reason::StrictReason;

/// The meaning of a header field for reading the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderField {
    /// Without relevance here.
    Plain,
    Host,
    Upgrade,
    Length,
    Encoding,
}

impl HeaderField {
    /// The longest relevant name.
    pub(super) const NAME_MAX: usize = b"transfer-encoding".len();

    /// Returns the field of this name.
    #[inline]
    pub(super) fn named(name: &[u8]) -> Result<Self, StrictReason> {
        // Nearly all names have another length than any of these.
        let (field, known) = match name.len() {
            4 => (Self::Host, &b"host"[..]),
            7 => (Self::Upgrade, &b"upgrade"[..]),
            14 => (Self::Length, &b"content-length"[..]),
            17 => (Self::Encoding, &b"transfer-encoding"[..]),
            _ => return Ok(Self::Plain),
        };
        if name.eq_ignore_ascii_case(known) {
            return Ok(field);
        }
        let is_alike = |(byte, known): (&u8, &u8)| {
            byte.eq_ignore_ascii_case(known) || (*byte == b'_' && *known == b'-')
        };
        if name.iter().zip(known).all(is_alike) {
            return Err(StrictReason::Lookalike);
        }
        Ok(Self::Plain)
    }

    /// Returns true if its value is read.
    pub(super) fn is_framing(self) -> bool {
        matches!(self, Self::Length | Self::Encoding)
    }
}
