//! Where in a request we are, byte after byte.

use super::field::Field;
use super::message::Message;
use super::reason::Reason;

/// Reads requests as they come, in whatever pieces: the verdict is the same. What is refused is
/// refused at the first byte that no good request could have there.
#[derive(Debug)]
pub(in crate::server) struct Reader {
    pub(super) state: State,
    pub(super) message: Message,
    /// How many bytes of a part, such as a name, have been read.
    pub(super) part: u32,
    /// The beginning of a name or value of which the rest is still to come.
    pub(super) begun: Vec<u8>,
    /// Heads that came to their end.
    pub(super) heads: u64,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Stop {
    /// What follows may be no request, depending on the answer.
    Turn,
    /// No good request goes on like this.
    Refused(Reason),
}

/// Where in a request we are.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
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
    Value(Section, Field),
    ValueLf(Section),
    EndLf(Section),
    Body(u64),
    ChunkSize(u64),
    Extension(u64),
    ChunkLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// After a request that asks for another protocol.
    Turn,
}

/// Where header lines stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Head,
    Trailer,
}

pub(super) const START: State = State::Start { may_be_empty: true };

impl Default for Reader {
    fn default() -> Self {
        Self {
            state: START,
            message: Message::default(),
            part: 0,
            begun: Vec::new(),
            heads: 0,
        }
    }
}

impl Reader {
    /// Reads `bytes`, up to where it has to stop, if it has to: at the byte of this index.
    ///
    /// After a refusal nothing is to be read any more.
    pub(in crate::server) fn read(&mut self, bytes: &[u8]) -> Result<(), (usize, Stop)> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Err(stop) = self.step(&mut rest) {
                return Err((bytes.len().saturating_sub(rest.len()), stop));
            }
        }
        Ok(())
    }

    /// How many heads have come to their end.
    pub(in crate::server) fn heads(&self) -> u64 {
        self.heads
    }

    /// The answer has made nothing of it: requests go on.
    pub(in crate::server) fn go_on(&mut self) {
        if matches!(self.state, State::Turn) {
            self.state = START;
        }
    }

    /// Whether it is within a body, or within its trailers.
    pub(in crate::server) fn is_in_body(&self) -> bool {
        matches!(
            self.state,
            State::Body(_)
                | State::ChunkSize(_)
                | State::Extension(_)
                | State::ChunkLf(_)
                | State::Data(_)
                | State::DataCr
                | State::DataLf
                | State::Name(Section::Trailer)
                | State::Value(Section::Trailer, _)
                | State::ValueLf(Section::Trailer)
                | State::EndLf(Section::Trailer)
        )
    }

    /// Whether no request has begun.
    #[cfg(test)]
    pub(super) fn is_between(&self) -> bool {
        matches!(self.state, State::Start { .. } | State::Turn)
    }

    /// Goes on by one part, or as much of it as there is. `rest` is not empty.
    fn step(&mut self, rest: &mut &[u8]) -> Result<(), Stop> {
        let step = match self.state {
            State::Start { may_be_empty } => self.start(rest, may_be_empty),
            State::StartLf => self.line_feed(
                rest,
                State::Start {
                    may_be_empty: false,
                },
            ),
            State::Method => self.method(rest),
            State::Target => self.target(rest),
            State::Version => self.version(rest),
            State::Minor => self.minor(rest),
            State::LineCr => self.expect(rest, b'\r', State::LineLf, Reason::RequestLine),
            State::LineLf => self.line_feed(rest, State::Name(Section::Head)),
            State::Name(section) => self.name(rest, section),
            State::Value(section, field) if field.is_framing() => {
                self.framing(rest, section, field)
            }
            State::Value(section, _) => self.value(rest, section),
            State::ValueLf(section) => self.line_feed(rest, State::Name(section)),
            State::EndLf(section) => self.end(rest, section),
            State::Body(left) | State::Data(left) => {
                self.skip(rest, left);
                Ok(())
            }
            State::ChunkSize(size) => self.chunk_size(rest, size),
            State::Extension(size) => self.extension(rest, size),
            State::ChunkLf(0) => self.line_feed(rest, State::Name(Section::Trailer)),
            State::ChunkLf(size) => self.line_feed(rest, State::Data(size)),
            State::DataCr => self.expect(rest, b'\r', State::DataLf, Reason::ChunkEnd),
            State::DataLf => self.expect(rest, b'\n', State::ChunkSize(0), Reason::ChunkEnd),
            State::Turn => return Err(Stop::Turn),
        };
        step.map_err(Stop::Refused)
    }

    /// The LF after a CR.
    pub(super) fn line_feed(&mut self, rest: &mut &[u8], next: State) -> Result<(), Reason> {
        self.expect(rest, b'\n', next, Reason::BareCr)
    }

    pub(super) fn expect(
        &mut self,
        rest: &mut &[u8],
        byte: u8,
        next: State,
        or: Reason,
    ) -> Result<(), Reason> {
        match rest.first() {
            Some(first) if *first == byte => {}
            Some(b'\n') => return Err(Reason::BareLf),
            _ => return Err(or),
        }
        self.take(rest, 1);
        // Within the version one byte follows another, and they are counted.
        if !matches!((self.state, next), (State::Version, State::Version)) {
            self.enter(next);
        }
        Ok(())
    }

    /// Takes so many bytes from the front of `rest`.
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

    pub(super) fn enter(&mut self, state: State) {
        self.state = state;
        self.part = 0;
        self.begun.clear();
    }
}
