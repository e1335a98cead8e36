//! The request line: `METHOD SP target SP HTTP/1.x`.

use super::bytes::{is_token, target_in, tokens_in};
use super::message::{ConnectMatch, RequestFraming};
use super::reader::{ReaderState, Section, StrictReader};
use super::reason::StrictReason;

const VERSION: &[u8] = b"HTTP/1.";

impl StrictReader {
    pub(super) fn start(
        &mut self,
        rest: &mut &[u8],
        may_be_empty: bool,
    ) -> Result<(), StrictReason> {
        match rest.first() {
            Some(byte) if is_token(*byte) => {
                self.message = RequestFraming::default();
                self.message.connect = ConnectMatch::begin();
                self.enter(ReaderState::Method);
                Ok(())
            }
            Some(b'\r') if may_be_empty => {
                self.take(rest, 1);
                self.enter(ReaderState::StartLf);
                Ok(())
            }
            Some(b'\n') => Err(StrictReason::BareLf),
            _ => Err(StrictReason::Garbage),
        }
    }

    pub(super) fn method(&mut self, rest: &mut &[u8]) -> Result<(), StrictReason> {
        let letters = self.take(rest, tokens_in(rest));
        self.message.connect = self.message.connect.go_on(letters);
        if rest.is_empty() {
            return Ok(());
        }
        self.message.connect = self.message.connect.end();
        self.expect(rest, b' ', ReaderState::Target, StrictReason::RequestLine)
    }

    pub(super) fn target(&mut self, rest: &mut &[u8]) -> Result<(), StrictReason> {
        self.take(rest, target_in(rest));
        if rest.is_empty() {
            return Ok(());
        }
        if self.part == 0 {
            return Err(StrictReason::RequestLine);
        }
        self.expect(rest, b' ', ReaderState::Version, StrictReason::RequestLine)
    }

    pub(super) fn version(&mut self, rest: &mut &[u8]) -> Result<(), StrictReason> {
        // Nearly always all of it is there.
        if self.part == 0
            && let Some(after) = rest.strip_prefix(b"HTTP/1.1\r\n")
        {
            *rest = after;
            self.enter(ReaderState::Name(Section::Head));
            return Ok(());
        }
        let known = usize::try_from(self.part).unwrap_or(usize::MAX);
        match VERSION.get(known) {
            Some(byte) => self.expect(rest, *byte, ReaderState::Version, StrictReason::RequestLine),
            None => {
                self.enter(ReaderState::Minor);
                Ok(())
            }
        }
    }

    pub(super) fn minor(&mut self, rest: &mut &[u8]) -> Result<(), StrictReason> {
        match rest.first() {
            Some(b'1') => {}
            Some(b'0') => self.message.is_old = true,
            _ => return Err(StrictReason::RequestLine),
        }
        self.take(rest, 1);
        self.enter(ReaderState::LineCr);
        Ok(())
    }
}
