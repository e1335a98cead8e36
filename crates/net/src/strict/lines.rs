//! Header lines, in a head and among trailers, up to the empty one.
//!
//! A line that two programs could read differently ends the connection: a bare line feed, a space before the
//! colon, a folded value, a control character. The lines themselves are not kept; hyper parses them again.

use super::bytes::{text_in, tokens_in};
use super::field::HeaderField;
use super::message::BodyLength;
use super::reader::{ReaderState, START, Section, StrictReader};
use super::reason::StrictReason;
use memchr::memchr3;

/// The most bytes of a value that determines how a request is read.
const FRAMING_MAX: usize = 64;

impl StrictReader {
    pub(super) fn name(&mut self, rest: &mut &[u8], section: Section) -> Result<(), StrictReason> {
        if self.part == 0 {
            self.pass(rest, section);
        }
        let name = self.take(rest, tokens_in(rest));
        if rest.is_empty() {
            self.remember(name, HeaderField::NAME_MAX.saturating_add(1));
            return Ok(());
        }
        match (rest.first(), self.part) {
            (Some(b':'), 1..) => {}
            (Some(b'\r'), 0) => {
                self.take(rest, 1);
                self.enter(ReaderState::EndLf(section));
                return Ok(());
            }
            (Some(b' ' | b'\t'), 0) => return Err(StrictReason::Fold),
            (Some(b'\n'), _) => return Err(StrictReason::BareLf),
            (Some(0), _) => return Err(StrictReason::Nul),
            _ => return Err(StrictReason::Name),
        }
        let field = if self.begun.is_empty() {
            HeaderField::named(name)?
        } else {
            self.remember(name, HeaderField::NAME_MAX.saturating_add(1));
            HeaderField::named(&self.begun)?
        };
        match section {
            Section::Head => self.message.begin(field)?,
            Section::Trailer if matches!(field, HeaderField::Plain | HeaderField::Upgrade) => {}
            Section::Trailer => return Err(StrictReason::Trailer),
        }
        self.take(rest, 1);
        self.enter(ReaderState::Value(section, field));
        Ok(())
    }

    /// Skips whole lines without relevance, which nearly all are, and the first host. Stops at any other
    /// line.
    fn pass(&mut self, rest: &mut &[u8], section: Section) {
        while let Some((name, [b':', value @ ..])) = rest.split_at_checked(tokens_in(rest)) {
            let is_host = match HeaderField::named(name) {
                Ok(HeaderField::Plain) if !name.is_empty() => false,
                Ok(HeaderField::Host) if !self.message.has_host && section == Section::Head => true,
                Ok(_) | Err(_) => return,
            };
            let Some((_, [b'\r', b'\n', after @ ..])) = value.split_at_checked(text_in(value))
            else {
                return;
            };
            if is_host {
                self.message.has_host = true;
            }
            *rest = after;
        }
    }

    pub(super) fn value(&mut self, rest: &mut &[u8], section: Section) -> Result<(), StrictReason> {
        let end = memchr3(b'\r', b'\n', 0, rest);
        self.take(rest, end.unwrap_or(rest.len()));
        match rest {
            // The whole line end, nearly always.
            [b'\r', b'\n', after @ ..] => {
                *rest = after;
                self.enter(ReaderState::Name(section));
            }
            [b'\r', ..] => {
                self.take(rest, 1);
                self.enter(ReaderState::ValueLf(section));
            }
            [] => {}
            [b'\n', ..] => return Err(StrictReason::BareLf),
            _ => return Err(StrictReason::Nul),
        }
        Ok(())
    }

    /// Reads a value that determines how the request is read.
    pub(super) fn framing(
        &mut self,
        rest: &mut &[u8],
        section: Section,
        field: HeaderField,
    ) -> Result<(), StrictReason> {
        let reason = match field {
            HeaderField::Length => StrictReason::Length,
            _ => StrictReason::Encoding,
        };
        let end = memchr3(b'\r', b'\n', 0, rest);
        let room = FRAMING_MAX.saturating_sub(self.begun.len());
        let length = end.unwrap_or(rest.len());
        let value = self.take(rest, length.min(room));
        if length > room {
            return Err(reason);
        }
        match rest.first() {
            None => {
                self.remember(value, FRAMING_MAX);
                return Ok(());
            }
            Some(b'\r') => {}
            Some(b'\n') => return Err(StrictReason::BareLf),
            Some(_) => return Err(StrictReason::Nul),
        }
        if self.begun.is_empty() {
            self.message.frame(field, value)?;
        } else {
            self.remember(value, FRAMING_MAX);
            self.message.frame(field, &self.begun)?;
        }
        self.take(rest, 1);
        self.enter(ReaderState::ValueLf(section));
        Ok(())
    }

    /// Reads the last byte of a head or of trailers.
    pub(super) fn end(&mut self, rest: &mut &[u8], section: Section) -> Result<(), StrictReason> {
        if rest.first() != Some(&b'\n') {
            return Err(StrictReason::BareCr);
        }
        let next = match section {
            Section::Trailer => self.after(),
            Section::Head => match self.message.follows()? {
                BodyLength::Bytes(0) => self.after(),
                BodyLength::Bytes(length) => ReaderState::Body(length),
                BodyLength::Chunks => ReaderState::ChunkSize(0),
            },
        };
        if section == Section::Head {
            self.heads = self.heads.wrapping_add(1);
        }
        self.take(rest, 1);
        self.enter(next);
        Ok(())
    }

    /// Returns the state after the request.
    pub(super) fn after(&self) -> ReaderState {
        if self.message.may_switch_protocol() {
            ReaderState::Turn
        } else {
            START
        }
    }
}
