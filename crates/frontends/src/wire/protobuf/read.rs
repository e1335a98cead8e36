//! The fields of a message, borrowed from its bytes.
//!
//! Nothing is copied, nothing is recursive, and every step consumes at least one byte, so the time is linear
//! in the length of the message.

use super::kind;
use std::fmt;

/// The highest number that a field may have.
const NUMBER_MAX: u64 = (1 << 29) - 1;

/// An error in a message. The text is for the author of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtobufError(pub(crate) &'static str);

impl ProtobufError {
    /// Creates an error of a message that is well formed, but not one of its kind.
    pub const fn new(words: &'static str) -> Self {
        Self(words)
    }

    /// Returns the text of the error.
    pub fn words(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ProtobufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireValue<'a> {
    /// A whole number, a boolean or an enumeration value.
    Varint(u64),
    /// Text, bytes, or a message.
    Bytes(&'a [u8]),
    /// A value of a type that none of Tidegate's messages has.
    Other,
}

/// The unread rest of a message.
#[derive(Clone, Copy, Debug)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

impl<'a> WireFields<'a> {
    /// Starts reading a message.
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns the next field, or `None` at the end.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, WireValue<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = number(tag)?;
        let value = match tag & 7 {
            kind::VARINT => WireValue::Varint(self.varint()?),
            kind::BYTES => WireValue::Bytes(self.bytes()?),
            other => self.skip(other, number)?,
        };
        Ok(Some((number, value)))
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, ProtobufError> {
        // Fast path for nearly all of them: tags, lengths, and small numbers.
        if let Some((&byte, rest)) = self.rest.split_first()
            && byte < 0x80
        {
            self.rest = rest;
            return Ok(byte.into());
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(ProtobufError("a number is truncated"));
            };
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError("a number has more than 64 bits"))
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], ProtobufError> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        self.take(length)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let split = self.rest.split_at_checked(length);
        let (bytes, rest) = split.ok_or(ProtobufError("a field is truncated"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Skips a field that none of Tidegate's messages has, and newer ones may.
    #[cold]
    fn skip(&mut self, wire: u64, number: u32) -> Result<WireValue<'a>, ProtobufError> {
        match wire {
            kind::FIXED_64 => self.take(8).map(|_| WireValue::Other),
            kind::FIXED_32 => self.take(4).map(|_| WireValue::Other),
            kind::GROUP => self.skip_group(number),
            kind::GROUP_END => Err(ProtobufError("a group ends without a start")),
            _ => Err(ProtobufError("a field has an unknown wire type")),
        }
    }

    /// Skips a group. Groups may be nested: the open ones are kept on a stack with a bounded depth.
    fn skip_group(&mut self, first: u32) -> Result<WireValue<'a>, ProtobufError> {
        const DEPTH_MAX: usize = 32;
        let mut open = smallvec::SmallVec::<[u32; DEPTH_MAX]>::new();
        open.push(first);
        while let Some(&innermost) = open.last() {
            let tag = self.varint()?;
            let number = number(tag)?;
            match tag & 7 {
                kind::VARINT => {
                    self.varint()?;
                }
                kind::BYTES => {
                    self.bytes()?;
                }
                kind::GROUP if open.len() >= DEPTH_MAX => {
                    return Err(ProtobufError("groups are nested too deeply"));
                }
                kind::GROUP => open.push(number),
                kind::GROUP_END if number == innermost => {
                    open.pop();
                }
                other => {
                    self.skip(other, number)?;
                }
            }
        }
        Ok(WireValue::Other)
    }
}

fn number(tag: u64) -> Result<u32, ProtobufError> {
    let number = tag >> 3;
    if number == 0 || number > NUMBER_MAX {
        return Err(ProtobufError("a field number is invalid"));
    }
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

impl<'a> WireValue<'a> {
    /// Returns the number, or an error if the field is not one.
    #[inline]
    pub fn varint(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(value) => Ok(value),
            Self::Bytes(_) | Self::Other => Err(WRONG_KIND),
        }
    }

    /// Returns a 32-bit number: higher bits are cut off, as protobuf specifies.
    #[inline]
    pub fn narrow(self) -> Result<u32, ProtobufError> {
        let value = self.varint()? & u64::from(u32::MAX);
        Ok(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Returns the bytes, or the nested message, or an error if the field is neither.
    #[inline]
    pub fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Other => Err(WRONG_KIND),
        }
    }

    /// Returns the text, or an error if the field is not text.
    #[inline]
    pub fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError("a text is not UTF-8"))
    }
}

const WRONG_KIND: ProtobufError = ProtobufError("a field has the wrong wire type");
