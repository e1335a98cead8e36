//! Bodies: with a length, or chunked.

use super::bytes::hexadecimal;
use super::reader::{ReaderState, StrictReader};
use super::reason::StrictReason;
use memchr::memchr3;

/// The most digits of a chunk's size that fit into 64 bits.
const CHUNK_DIGITS_MAX: u32 = 16;
/// The most bytes of the extensions of one chunk, which are unused in practice.
const EXTENSION_MAX: u32 = 256;

impl StrictReader {
    /// Skips the data of a body or of a chunk.
    pub(super) fn skip(&mut self, rest: &mut &[u8], left: u64) {
        let there = rest.len();
        let passed = usize::try_from(left).map_or(there, |left| left.min(there));
        *rest = rest.get(passed..).unwrap_or_default();
        let left = left.saturating_sub(passed as u64);
        let is_chunk = matches!(self.state, ReaderState::Data(_));
        self.state = match (is_chunk, left) {
            (true, 0) => ReaderState::DataCr,
            (true, left) => ReaderState::Data(left),
            (false, 0) => self.after(),
            (false, left) => ReaderState::Body(left),
        };
        self.part = 0;
    }

    pub(super) fn chunk_size(&mut self, rest: &mut &[u8], size: u64) -> Result<(), StrictReason> {
        let Some(byte) = rest.first().copied() else {
            return Ok(());
        };
        let has_digits = self.part > 0;
        if let Some(digit) = hexadecimal(byte) {
            if self.part == CHUNK_DIGITS_MAX {
                return Err(StrictReason::ChunkSize);
            }
            self.take(rest, 1);
            // The number of digits is bounded, so no bit is shifted out.
            self.state = ReaderState::ChunkSize((size << 4) | digit);
            return Ok(());
        }
        match byte {
            b'\r' if has_digits => self.enter(ReaderState::ChunkLf(size)),
            b';' if has_digits => self.enter(ReaderState::Extension(size)),
            b'\n' if has_digits => return Err(StrictReason::BareLf),
            _ => return Err(StrictReason::ChunkSize),
        }
        *rest = rest.get(1..).unwrap_or_default();
        Ok(())
    }

    pub(super) fn extension(&mut self, rest: &mut &[u8], size: u64) -> Result<(), StrictReason> {
        let end = memchr3(b'\r', b'\n', 0, rest).unwrap_or(rest.len());
        let room = EXTENSION_MAX.saturating_sub(self.part);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.take(rest, end.min(room));
        if end > room {
            return Err(StrictReason::ChunkExtension);
        }
        match rest.first() {
            None => {}
            Some(b'\r') => {
                self.take(rest, 1);
                self.enter(ReaderState::ChunkLf(size));
            }
            Some(b'\n') => return Err(StrictReason::BareLf),
            Some(_) => return Err(StrictReason::Nul),
        }
        Ok(())
    }
}
