//! The position in a request, byte after byte.

use super::field::HeaderField;
use super::message::RequestFraming;
use super::reason::StrictReason;

/// A reader of requests in pieces. The result does not depend on the sizes of the pieces. A request is
/// rejected at the first byte that no valid request could have there.
#[derive(Debug)]
pub(crate) struct StrictReader {
    pub(super) state: ReaderState,
    pub(super) message: RequestFraming,
    /// The number of bytes of a part, such as a name, that have been read.
    pub(super) part: u32,
    /// The beginning of a name or value of which the rest is still to come.
    pub(super) begun: Vec<u8>,
    /// The number of complete heads.
    pub(super) heads: u64,
}

/// The reason why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStop {
    /// Depending on the response, the following bytes may not be HTTP.
    Turn,
    /// The request is invalid.
    Refused(StrictReason),
}

/// The position in a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReaderState {
    /// Before a request; one empty line may precede it.
    Start {
        may_be_empty: bool,
    },
    StartLf,
    Method,
    Target,
    Version,
    Minor,
    LineCr,
    LineLf,
    /// At the beginning of a header line, or in its name.
    Name(Section),
    Value(Section, HeaderField),
    ValueLf(Section),
    EndLf(Section),
    Body(u64),
    ChunkSize(u64),
    Extension(u64),
    ChunkLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// After a request for another protocol.
    Turn,
}

/// The section of header lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Head,
    Trailer,
}

pub(super) const START: ReaderState = ReaderState::Start { may_be_empty: true };

impl Default for StrictReader {
    fn default() -> Self {
        Self {
            state: START,
            message: RequestFraming::default(),
            part: 0,
            begun: Vec::new(),
            heads: 0,
        }
    }
}

impl StrictReader {
    /// Reads `bytes`. If it has to stop, returns the index of the byte and the reason.
    ///
    /// After a refusal, `read` must not be called again.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), (usize, ReadStop)> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Err(stop) = self.step(&mut rest) {
                return Err((bytes.len().saturating_sub(rest.len()), stop));
            }
        }
        Ok(())
    }

    /// Returns the number of complete heads.
    pub(crate) fn heads(&self) -> u64 {
        self.heads
    }

    /// Continues with requests after an upgrade was declined.
    pub(crate) fn go_on(&mut self) {
        if matches!(self.state, ReaderState::Turn) {
            self.state = START;
        }
    }

    /// Returns true within a body or its trailers.
    pub(crate) fn is_in_body(&self) -> bool {
        matches!(
            self.state,
            ReaderState::Body(_)
                | ReaderState::ChunkSize(_)
                | ReaderState::Extension(_)
                | ReaderState::ChunkLf(_)
                | ReaderState::Data(_)
                | ReaderState::DataCr
                | ReaderState::DataLf
                | ReaderState::Name(Section::Trailer)
                | ReaderState::Value(Section::Trailer, _)
                | ReaderState::ValueLf(Section::Trailer)
                | ReaderState::EndLf(Section::Trailer)
        )
    }

    /// Returns true between requests.
    #[cfg(test)]
    pub(super) fn is_between(&self) -> bool {
        matches!(self.state, ReaderState::Start { .. } | ReaderState::Turn)
    }

    /// Reads one part, or as much of it as there is. `rest` is not empty.
    fn step(&mut self, rest: &mut &[u8]) -> Result<(), ReadStop> {
        let step = match self.state {
            ReaderState::Start { may_be_empty } => self.start(rest, may_be_empty),
            ReaderState::StartLf => self.line_feed(
                rest,
                ReaderState::Start {
                    may_be_empty: false,
                },
            ),
            ReaderState::Method => self.method(rest),
            ReaderState::Target => self.target(rest),
            ReaderState::Version => self.version(rest),
            ReaderState::Minor => self.minor(rest),
            ReaderState::LineCr => {
                self.expect(rest, b'\r', ReaderState::LineLf, StrictReason::RequestLine)
            }
            ReaderState::LineLf => self.line_feed(rest, ReaderState::Name(Section::Head)),
            ReaderState::Name(section) => self.name(rest, section),
            ReaderState::Value(section, field) if field.is_framing() => {
                self.framing(rest, section, field)
            }
            ReaderState::Value(section, _) => self.value(rest, section),
            ReaderState::ValueLf(section) => self.line_feed(rest, ReaderState::Name(section)),
            ReaderState::EndLf(section) => self.end(rest, section),
            ReaderState::Body(left) | ReaderState::Data(left) => {
                self.skip(rest, left);
                Ok(())
            }
            ReaderState::ChunkSize(size) => self.chunk_size(rest, size),
            ReaderState::Extension(size) => self.extension(rest, size),
            ReaderState::ChunkLf(0) => self.line_feed(rest, ReaderState::Name(Section::Trailer)),
            ReaderState::ChunkLf(size) => self.line_feed(rest, ReaderState::Data(size)),
            ReaderState::DataCr => {
                self.expect(rest, b'\r', ReaderState::DataLf, StrictReason::ChunkEnd)
            }
            ReaderState::DataLf => self.expect(
                rest,
                b'\n',
                ReaderState::ChunkSize(0),
                StrictReason::ChunkEnd,
            ),
            ReaderState::Turn => return Err(ReadStop::Turn),
        };
        step.map_err(ReadStop::Refused)
    }

    /// Reads the LF after a CR.
    pub(super) fn line_feed(
        &mut self,
        rest: &mut &[u8],
        next: ReaderState,
    ) -> Result<(), StrictReason> {
        self.expect(rest, b'\n', next, StrictReason::BareCr)
    }

    pub(super) fn expect(
        &mut self,
        rest: &mut &[u8],
        byte: u8,
        next: ReaderState,
        or: StrictReason,
    ) -> Result<(), StrictReason> {
        match rest.first() {
            Some(first) if *first == byte => {}
            Some(b'\n') => return Err(StrictReason::BareLf),
            _ => return Err(or),
        }
        self.take(rest, 1);
        // The bytes within the version are counted, so the state must not restart.
        if !matches!(
            (self.state, next),
            (ReaderState::Version, ReaderState::Version)
        ) {
            self.enter(next);
        }
        Ok(())
    }

    /// Takes this many bytes from the front of `rest`.
    pub(super) fn take<'a>(&mut self, rest: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (taken, left) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        *rest = left;
        let count = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        self.part = self.part.saturating_add(count);
        taken
    }

    pub(super) fn remember(&mut self, piece: &[u8], bytes_max: usize) {
        let room = bytes_max.saturating_sub(self.begun.len());
        let piece = piece.get(..room).unwrap_or(piece);
        self.begun.extend_from_slice(piece);
    }

    pub(super) fn enter(&mut self, state: ReaderState) {
        self.state = state;
        self.part = 0;
        self.begun.clear();
    }
}
