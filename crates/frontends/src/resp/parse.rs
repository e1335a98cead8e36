//! Parses bytes into commands: multibulk and inline, like Redis, within bounds.
//!
//! A multibulk command is not copied: its words are ranges of the input. A command that arrives in pieces
//! is not parsed from its start again with each piece.

use memchr::memchr;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The maximum number of bytes of an inline command, and of a line with a length.
const LINE_BYTES_MAX: usize = 16 << 10;

/// The number of word ranges whose memory is kept for the next command; a command may have more.
const WORDS_KEPT: usize = 64;

/// The bounds of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandBounds {
    /// The maximum number of words of a command.
    pub words: usize,
    /// The maximum number of bytes of a word.
    pub word_bytes: usize,
    /// The maximum number of bytes of a whole command.
    pub command_bytes: usize,
    /// These bounds apply before login; errors then mention it.
    pub is_stranger: bool,
}

impl CommandBounds {
    /// Returns the bounds for a client that is logged in, or needs no login.
    pub fn of_client(command_bytes: usize) -> Self {
        Self {
            words: 1_024,
            word_bytes: command_bytes,
            command_bytes,
            is_stranger: false,
        }
    }

    /// Returns the bounds for a client that has not logged in yet.
    pub fn unauthenticated(command_bytes: usize) -> Self {
        Self {
            words: 10,
            word_bytes: command_bytes.min(16 << 10),
            command_bytes,
            is_stranger: true,
        }
    }
}

/// The progress of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseProgress {
    /// A complete command, perhaps without words, which took this many bytes. [`Parser::command`] returns
    /// it.
    Command(usize),
    /// More input is needed.
    More,
}

/// A protocol error. The start of the next command cannot be found after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RespFault(Cow<'static, str>);

impl RespFault {
    /// Returns the message, without `ERR`.
    pub fn message(&self) -> &str {
        &self.0
    }
}

const fn fault(message: &'static str) -> RespFault {
    RespFault(Cow::Borrowed(message))
}

const BAD_COUNT: RespFault = fault("Protocol error: invalid multibulk length");
const BAD_LENGTH: RespFault = fault("Protocol error: invalid bulk length");
const STRANGE_COUNT: RespFault = fault("Protocol error: unauthenticated multibulk length");
const STRANGE_LENGTH: RespFault = fault("Protocol error: unauthenticated bulk length");
const LONG_COUNT: RespFault = fault("Protocol error: too big mbulk count string");
const LONG_LENGTH: RespFault = fault("Protocol error: too big bulk count string");
const LONG_INLINE: RespFault = fault("Protocol error: too big inline request");
const UNBALANCED: RespFault = fault("Protocol error: unbalanced quotes in request");

/// The range of a word in the text.
pub(super) type WordRange = (u32, u32);

/// Parses commands, one at a time, and keeps its progress in an incomplete one.
#[derive(Debug, Default)]
pub struct Parser {
    /// The offset from the command's first byte at which parsing continues; 0 if none has begun.
    at: usize,
    /// The number of bytes from `at` on that contain no end of a line.
    searched: usize,
    /// The number of words of a multibulk command that are still missing.
    missing: usize,
    /// The length of the next word, once known.
    length: Option<usize>,
    /// The ranges of the words so far.
    places: SmallVec<[WordRange; 8]>,
    /// The words of an inline command, unquoted.
    unquoted: Vec<u8>,
    is_inline: bool,
}

/// The words of a command. The first is its name.
#[derive(Clone, Copy, Debug)]
pub struct RespCommand<'a> {
    text: &'a [u8],
    places: &'a [WordRange],
}

/// A command that owns its text.
#[derive(Debug)]
pub(super) struct OwnedCommand {
    text: Vec<u8>,
    places: SmallVec<[WordRange; 8]>,
}

impl OwnedCommand {
    pub(super) fn as_command(&self) -> RespCommand<'_> {
        RespCommand {
            text: &self.text,
            places: &self.places,
        }
    }
}

impl<'a> RespCommand<'a> {
    /// Returns the command whose words are at `places` in `text`.
    pub(super) fn new(text: &'a [u8], places: &'a [WordRange]) -> Self {
        Self { text, places }
    }

    /// Returns the number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if it has no words, so that it gets no reply.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns a word, from 0; an empty one if there is none.
    #[inline]
    pub fn word(&self, nth: usize) -> &'a [u8] {
        self.places.get(nth).map_or(&[], |place| self.at(*place))
    }

    /// Returns all words.
    pub fn words(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.places.iter().map(move |place| self.at(*place))
    }

    /// Copies the command.
    pub(super) fn to_owned(self) -> OwnedCommand {
        let mut text = Vec::new();
        let mut places = SmallVec::new();
        for word in self.words() {
            let start = place(text.len());
            text.extend_from_slice(word);
            places.push((start, place(text.len())));
        }
        OwnedCommand { text, places }
    }

    #[inline]
    fn at(&self, (start, end): WordRange) -> &'a [u8] {
        // Lossless: a usize has no fewer bits here.
        self.text.get(start as usize..end as usize).unwrap_or(&[])
    }
}

impl Parser {
    /// Parses the next command. `text` begins with its first byte; after [`ParseProgress::More`] it has to be
    /// the same text, extended.
    ///
    /// # Errors
    ///
    /// A violation of the protocol or of `bounds`. The connection cannot continue: the start of the next command is
    /// unknown.
    #[inline]
    pub fn parse(
        &mut self,
        text: &[u8],
        bounds: &CommandBounds,
    ) -> Result<ParseProgress, RespFault> {
        if self.at == 0 {
            self.forget();
            match text.first() {
                None => return Ok(ParseProgress::More),
                Some(b'*') => {
                    let Some((count, next)) = self.count(text, bounds)? else {
                        return Ok(ParseProgress::More);
                    };
                    self.is_inline = false;
                    self.missing = count;
                    self.go_on(next);
                }
                Some(_) => return self.parse_inline(text),
            }
        }
        while self.missing > 0 {
            let Some(next) = self.word(text, bounds)? else {
                return Ok(ParseProgress::More);
            };
            self.missing = self.missing.saturating_sub(1);
            self.go_on(next);
        }
        Ok(self.done(self.at))
    }

    /// Returns the command that was parsed last. `text` must be the text that it was parsed from.
    #[inline]
    pub fn command<'a>(&'a self, text: &'a [u8]) -> RespCommand<'a> {
        RespCommand {
            text: if self.is_inline { &self.unquoted } else { text },
            places: &self.places,
        }
    }

    /// Clears the last command, and frees the memory of a large one.
    #[inline]
    fn forget(&mut self) {
        self.places.clear();
        if self.places.capacity() > WORDS_KEPT {
            self.places = SmallVec::new();
        }
    }

    #[inline]
    fn go_on(&mut self, at: usize) {
        self.at = at;
        self.searched = 0;
    }

    #[inline]
    fn done(&mut self, used: usize) -> ParseProgress {
        self.go_on(0);
        ParseProgress::Command(used)
    }

    /// Parses the number of words, and returns it with the position of the first.
    #[inline]
    fn count(
        &mut self,
        text: &[u8],
        bounds: &CommandBounds,
    ) -> Result<Option<(usize, usize)>, RespFault> {
        let Some((count, next)) = self.number(text, bounds, LONG_COUNT)? else {
            return Ok(None);
        };
        let count = match count.ok_or(BAD_COUNT)? {
            ..0 => 0,
            count => usize::try_from(count).map_err(|_| BAD_COUNT)?,
        };
        if count > bounds.words {
            let is_large = i32::try_from(count).is_err();
            return Err(if bounds.is_stranger && !is_large {
                STRANGE_COUNT
            } else {
                BAD_COUNT
            });
        }
        Ok(Some((count, next)))
    }

    /// Parses a word, and returns the position of the next.
    #[inline]
    fn word(&mut self, text: &[u8], bounds: &CommandBounds) -> Result<Option<usize>, RespFault> {
        let length = match self.length {
            Some(length) => length,
            None => match text.get(self.at) {
                None => return Ok(None),
                Some(b'$') => {
                    let Some((length, next)) = self.number(text, bounds, LONG_LENGTH)? else {
                        return Ok(None);
                    };
                    let length = allowed_length(length, next, bounds)?;
                    self.length = Some(length);
                    self.go_on(next);
                    length
                }
                Some(other) => return Err(not_a_length(*other)),
            },
        };
        let end = self.at.saturating_add(length);
        // Like Redis, skip the two bytes after a word without checking them.
        let next = end.saturating_add(2);
        if text.len() < next {
            return Ok(None);
        }
        self.places.push((place(self.at), place(end)));
        self.length = None;
        Ok(Some(next))
    }

    /// Parses the number after the byte at `at`, `None` if it is invalid, and returns it with the end of
    /// its line.
    #[inline]
    fn number(
        &mut self,
        text: &[u8],
        bounds: &CommandBounds,
        too_long: RespFault,
    ) -> Result<Option<(Option<i64>, usize)>, RespFault> {
        let start = self.at.saturating_add(1);
        let rest = text.get(start..).unwrap_or(&[]);
        // Nearly always this is one digit or two and the end of the line.
        match rest {
            [digit @ b'0'..=b'9', b'\r', _, ..] => {
                let number = i64::from(digit - b'0');
                return Ok(Some((Some(number), start.saturating_add(3))));
            }
            [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => {
                let number = i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
                return Ok(Some((Some(number), start.saturating_add(4))));
            }
            _ => {}
        }
        let mut number = 0_i64;
        for (nth, byte) in rest.iter().take(5).enumerate() {
            match byte {
                b'0'..=b'9' => number = number * 10 + i64::from(byte - b'0'),
                b'\r' if nth > 0 && rest.len() > nth.saturating_add(1) => {
                    let is_padded = nth > 1 && rest.first() == Some(&b'0');
                    let next = start.saturating_add(nth).saturating_add(2);
                    return Ok(Some(((!is_padded).then_some(number), next)));
                }
                _ => break,
            }
        }
        self.odd_number(text, bounds, too_long)
    }

    /// Parses a number that is longer, negative, incomplete or invalid.
    #[cold]
    fn odd_number(
        &mut self,
        text: &[u8],
        bounds: &CommandBounds,
        too_long: RespFault,
    ) -> Result<Option<(Option<i64>, usize)>, RespFault> {
        let start = self.at.saturating_add(1);
        let from = start.saturating_add(self.searched);
        let rest = text.get(from..).unwrap_or(&[]);
        match memchr(b'\r', rest) {
            Some(found) if rest.len() > found.saturating_add(1) => {
                let end = from.saturating_add(found);
                let number = strict_number(text.get(start..end).unwrap_or(&[]));
                Ok(Some((number, end.saturating_add(2))))
            }
            found => {
                // The byte after the carriage return may be still missing, so the search finds the return
                // again.
                self.searched = from
                    .saturating_add(found.unwrap_or(rest.len()))
                    .saturating_sub(start);
                self.more(text, bounds.command_bytes, too_long)
            }
        }
    }

    /// Asks for more input, unless an unfinished line is too long already.
    fn more<T>(
        &self,
        text: &[u8],
        bytes_max: usize,
        too_long: RespFault,
    ) -> Result<Option<T>, RespFault> {
        if self.searched > LINE_BYTES_MAX || text.len() >= bytes_max {
            return Err(too_long);
        }
        Ok(None)
    }

    #[cold]
    fn parse_inline(&mut self, text: &[u8]) -> Result<ParseProgress, RespFault> {
        let rest = text.get(self.searched..).unwrap_or(&[]);
        let Some(found) = memchr(b'\n', rest) else {
            self.searched = text.len();
            return match self.more::<()>(text, usize::MAX, LONG_INLINE) {
                Ok(_) => Ok(ParseProgress::More),
                Err(fault) => Err(fault),
            };
        };
        let end = self.searched.saturating_add(found);
        if end > LINE_BYTES_MAX {
            return Err(LONG_INLINE);
        }
        let line = text.get(..end).unwrap_or(&[]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_inline = true;
        super::inline::split(line, &mut self.unquoted, &mut self.places).ok_or(UNBALANCED)?;
        Ok(self.done(end.saturating_add(1)))
    }
}

/// Converts a position in a command, whose size is bounded far below 2^32.
#[inline]
pub fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn allowed_length(
    length: Option<i64>,
    next: usize,
    bounds: &CommandBounds,
) -> Result<usize, RespFault> {
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or(BAD_LENGTH)?;
    if length > bounds.word_bytes {
        return Err(if bounds.is_stranger && length <= 512 << 20 {
            STRANGE_LENGTH
        } else {
            BAD_LENGTH
        });
    }
    if next.saturating_add(length).saturating_add(2) > bounds.command_bytes {
        return Err(BAD_LENGTH);
    }
    Ok(length)
}

#[cold]
fn not_a_length(found: u8) -> RespFault {
    let found = match found {
        b'\r' | b'\n' => ' ',
        found if found.is_ascii() => char::from(found),
        _ => '?',
    };
    RespFault(Cow::Owned(format!(
        "Protocol error: expected '$', got '{found}'"
    )))
}

/// Parses a number by Redis's rules: no plus sign, no leading zeros, nothing around it.
pub(super) fn strict_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(text).ok().filter(|_| is_canonical)?;
    text.parse().ok()
}
