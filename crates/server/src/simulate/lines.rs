//! The lines of a file or a stream, in large reads and without copying.

use memchr::memchr;
use std::io::{self, ErrorKind, Read};

/// The maximum length of a line in bytes.
pub const LINE_MAX: usize = 1 << 20;

/// The size of a read: large enough that the cost of a system call is negligible, and small enough to
/// stay in the processor's cache until it has been processed.
const CHUNK: usize = 256 << 10;

/// The lines of a file or a stream. Memory is bounded for any input.
///
/// Call [`next_line`](Self::next_line) until it returns none, then [`fill`](Self::fill), until that has
/// no more either.
#[derive(Debug)]
pub struct InputLines<R> {
    input: R,
    /// The unprocessed input is `buffer[start..end]`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The input has ended.
    is_over: bool,
    /// The start of the current line was too long to keep.
    is_cut: bool,
    taken: u64,
    read_bytes: u64,
}

/// A line, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLine<'a> {
    /// The bytes of the line.
    Whole(&'a [u8]),
    /// The line is longer than [`LINE_MAX`].
    TooLong,
}

impl<R: Read> InputLines<R> {
    /// Returns the lines of `input`. Nothing is read yet.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; LINE_MAX + CHUNK].into_boxed_slice(),
            start: 0,
            end: 0,
            is_over: false,
            is_cut: false,
            taken: 0,
            read_bytes: 0,
        }
    }

    /// Returns the next line, if it has been read completely.
    #[inline]
    pub fn next_line(&mut self) -> Option<InputLine<'_>> {
        let rest = self.buffer.get(self.start..self.end).unwrap_or_default();
        let (line, len) = match memchr(b'\n', rest) {
            Some(len) => (rest.get(..len).unwrap_or_default(), len + 1),
            None if self.is_over && (self.is_cut || !rest.is_empty()) => (rest, rest.len()),
            None => return None,
        };
        self.start += len;
        self.taken += 1;
        if std::mem::take(&mut self.is_cut) || line.len() > LINE_MAX {
            return Some(InputLine::TooLong);
        }
        let line = match self.taken {
            // Some editors begin a file with a byte order mark.
            1 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            _ => line,
        };
        Some(InputLine::Whole(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Reads more. Returns true if there may be more lines now. Blocks while the input does.
    ///
    /// # Errors
    ///
    /// The error of the input. An interrupted read is repeated.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > LINE_MAX {
            self.is_cut = true;
            self.end = 0;
        }
        let room = self.buffer.get_mut(self.end..self.end + CHUNK);
        let room = room.unwrap_or_default();
        let count = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                count => break count?,
            }
        };
        self.end += count;
        self.read_bytes += u64::try_from(count).unwrap_or(0);
        self.is_over = count == 0;
        Ok(true)
    }

    /// Reads until the first line is complete, or too long, and returns all unprocessed input. Consumes
    /// nothing.
    ///
    /// # Errors
    ///
    /// Those of [`fill`](Self::fill).
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        while memchr(b'\n', self.unread()).is_none() && self.unread().len() <= LINE_MAX {
            if !self.fill()? {
                break;
            }
        }
        Ok(self.unread())
    }

    /// Returns the number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.taken
    }

    /// Returns the number of bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns its text `step` bytes at a time.
    struct Trickle<'a> {
        text: &'a [u8],
        step: usize,
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.step.min(self.text.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.text[..count]);
            self.text = &self.text[count..];
            Ok(count)
        }
    }

    fn run(text: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = InputLines::new(Trickle { text, step });
        let mut all = Vec::new();
        loop {
            while let Some(line) = lines.next_line() {
                all.push(match line {
                    InputLine::Whole(line) => Some(line.to_vec()),
                    InputLine::TooLong => None,
                });
            }
            if !lines.fill().expect("reading from memory") {
                assert_eq!(lines.number(), all.len() as u64);
                assert_eq!(lines.read_bytes(), text.len() as u64);
                return all;
            }
        }
    }

    fn texts(lines: &[&str]) -> Vec<Option<Vec<u8>>> {
        lines
            .iter()
            .map(|line| Some(line.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn lines_may_end_in_any_line_break() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\nb", &["a", "b"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("\n\n", &["", ""]),
            ("\u{feff}a\n\u{feff}b", &["a", "\u{feff}b"]),
            ("a\rb\n", &["a\rb"]),
        ] {
            for step in [1, 2, 3, 1_000] {
                assert_eq!(run(text.as_bytes(), step), texts(expected), "{text:?}");
            }
        }
    }

    #[test]
    fn a_line_may_be_as_long_as_the_bound_and_no_longer() {
        for step in [CHUNK, CHUNK - 1, LINE_MAX * 4] {
            for excess in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * LINE_MAX] {
                let long = vec![b'x'; LINE_MAX + excess];
                let kept = (excess == 0).then(|| long.clone());
                let text = [b"a\n", &long[..], b"\nb"].concat();
                let (a, b) = (Some(b"a".to_vec()), Some(b"b".to_vec()));
                assert_eq!(run(&text, step), [a.clone(), kept.clone(), b]);
                let text = [b"a\n", &long[..]].concat();
                assert_eq!(run(&text, step), [a, kept]);
            }
        }
    }

    #[test]
    fn peeking_consumes_nothing() {
        let mut lines = InputLines::new(Trickle {
            text: b"first\nsecond",
            step: 2,
        });
        assert_eq!(lines.peek().expect("memory"), b"first\n");
        assert_eq!(lines.next_line(), Some(InputLine::Whole(b"first")));
        let mut lines = InputLines::new(&b""[..]);
        assert_eq!(lines.peek().expect("memory"), b"");
    }
}
