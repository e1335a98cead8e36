//! The framing of the request that is being read.

use super::bytes::{number, trim};
use super::field::HeaderField;
use super::reason::StrictReason;

/// The framing of the request that is being read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestFraming {
    /// True if it is HTTP/1.0.
    pub(super) is_old: bool,
    /// The match of its method with `CONNECT`, so far.
    pub(super) connect: ConnectMatch,
    pub(super) has_host: bool,
    wants_upgrade: bool,
    /// The body according to the headers so far.
    said: Option<BodyLength>,
}

/// The progress of matching the method with `CONNECT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectMatch {
    /// This many of its letters have matched.
    Letters(u8),
    #[default]
    No,
    Yes,
}

/// The body after a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Bytes(u64),
    Chunks,
}

impl RequestFraming {
    /// Records a field of this name.
    pub(super) fn begin(&mut self, field: HeaderField) -> Result<(), StrictReason> {
        match field {
            HeaderField::Host if self.has_host => return Err(StrictReason::TwoHosts),
            HeaderField::Host => self.has_host = true,
            HeaderField::Upgrade => self.wants_upgrade = true,
            HeaderField::Plain | HeaderField::Length | HeaderField::Encoding => {}
        }
        Ok(())
    }

    /// Records the value of a framing field.
    pub(super) fn frame(&mut self, field: HeaderField, value: &[u8]) -> Result<(), StrictReason> {
        let value = trim(value);
        let (length, reason) = if field == HeaderField::Length {
            let length = number(value).map(BodyLength::Bytes);
            (length, StrictReason::Length)
        } else {
            let is_chunked = value.eq_ignore_ascii_case(b"chunked") && !self.is_old;
            (
                is_chunked.then_some(BodyLength::Chunks),
                StrictReason::Encoding,
            )
        };
        let length = length.ok_or(reason)?;
        match (self.said, length) {
            (None, length) => self.said = Some(length),
            (Some(BodyLength::Bytes(_)), BodyLength::Bytes(_))
            | (Some(BodyLength::Chunks), BodyLength::Chunks) => return Err(reason),
            (Some(_), _) => return Err(StrictReason::LengthAndEncoding),
        }
        Ok(())
    }

    /// Returns the body at the end of the head. Returns an error if a required `Host` is missing.
    pub(super) fn follows(&self) -> Result<BodyLength, StrictReason> {
        if !self.has_host && !self.is_old {
            return Err(StrictReason::NoHost);
        }
        Ok(self.said.unwrap_or(BodyLength::Bytes(0)))
    }

    /// Returns true if, depending on the response, the following bytes may not be HTTP.
    pub(super) fn may_switch_protocol(&self) -> bool {
        self.wants_upgrade || self.connect == ConnectMatch::Yes
    }
}

impl ConnectMatch {
    const LETTERS: &[u8] = b"CONNECT";

    /// Starts with an empty method.
    pub(super) fn begin() -> Self {
        Self::Letters(0)
    }

    /// Continues the method with these letters.
    #[inline]
    pub(super) fn go_on(self, letters: &[u8]) -> Self {
        let Self::Letters(known) = self else {
            return self;
        };
        let rest = Self::LETTERS.get(usize::from(known)..).unwrap_or_default();
        match u8::try_from(letters.len()) {
            Ok(more) if rest.starts_with(letters) => Self::Letters(known.saturating_add(more)),
            _ => Self::No,
        }
    }

    /// Ends the method.
    pub(super) fn end(self) -> Self {
        match self {
            Self::Letters(known) if usize::from(known) == Self::LETTERS.len() => Self::Yes,
            _ => Self::No,
        }
    }
}
