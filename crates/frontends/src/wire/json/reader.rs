//! Reads JSON from front to back, without building a tree.

use super::string::{StringScan, scan, unescape};
use super::{JsonResult, number};
use crate::wire::fault::WireFault;
use std::borrow::Cow;

/// The maximum depth of nested lists and objects.
pub const DEPTH_MAX: u8 = 32;

/// A reader of JSON from front to back.
///
/// The caller asks for the type that it expects. The reader returns it, or a [`WireFault`] with the type
/// found instead. Strings are borrowed unless they contain escapes. Strict: anything that RFC 8259 does not
/// allow is an error.
///
/// ```
/// use tidegate_frontends::wire::json::JsonReader;
///
/// let mut reader = JsonReader::new(br#"{"name": "ann", "roles": ["admin"]}"#)?;
/// let (mut name, mut roles) = (String::new(), 0);
/// reader.object(|reader, member| match member.as_ref() {
///     "name" => Ok(name = reader.string()?.into_owned()),
///     "roles" => reader.list(|reader, _| {
///         roles += 1;
///         reader.skip()
///     }),
///     _ => Err(reader.expected("nothing else")),
/// })?;
/// reader.end()?;
/// assert_eq!((name.as_str(), roles), ("ann", 1));
/// # Ok::<(), Box<tidegate_frontends::wire::fault::WireFault>>(())
/// ```
#[derive(Debug)]
pub struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

impl<'a> JsonReader<'a> {
    /// Creates a reader of `text`. Returns an error unless `text` is UTF-8.
    pub fn new(text: &'a [u8]) -> JsonResult<Self> {
        match std::str::from_utf8(text) {
            Ok(text) => Ok(Self {
                text,
                at: 0,
                depth: 0,
            }),
            Err(error) => Err(WireFault::new(error.valid_up_to(), "not valid UTF-8")),
        }
    }

    /// Returns the position, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte()?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Reads a string.
    #[inline]
    pub fn string(&mut self) -> JsonResult<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.at + 1;
        let rest = self.text.get(start..).unwrap_or_default();
        match scan(rest.as_bytes()) {
            StringScan::Closed(len) => {
                self.at = start + len + 1;
                Ok(Cow::Borrowed(rest.get(..len).unwrap_or_default()))
            }
            StringScan::Escaped(_) => {
                let (string, len) =
                    unescape(rest).map_err(|(at, why)| WireFault::new(start + at, why))?;
                self.at = start + len + 1;
                Ok(Cow::Owned(string))
            }
            StringScan::Broken(len, why) => Err(WireFault::new(start + len, why)),
        }
    }

    /// Reads a string, or `null` as `None`.
    #[inline]
    pub fn string_or_null(&mut self) -> JsonResult<Option<Cow<'a, str>>> {
        if self.null()? {
            return Ok(None);
        }
        self.string().map(Some)
    }

    /// Reads a non-negative whole number.
    ///
    /// # Errors
    ///
    /// A number with a sign, a fraction or an exponent, or above [`u64::MAX`], is a fault that quotes it.
    #[inline]
    pub fn whole(&mut self) -> JsonResult<u64> {
        if !matches!(self.peek(), Some(b'0'..=b'9' | b'-')) {
            return Err(self.expected("a whole number"));
        }
        let start = self.at;
        if let Some((value, len)) = number::whole(self.rest()) {
            self.at += len;
            return Ok(value);
        }
        let found = self.number()?;
        let message = format!(
            "expected a whole number from 0 to {}, found {found}",
            u64::MAX
        );
        Err(WireFault::new(start, message))
    }

    /// Reads a number and returns its text unchanged.
    ///
    /// The text is returned and not a float, because a float would change large whole numbers.
    pub fn number(&mut self) -> JsonResult<&'a str> {
        if !matches!(self.peek(), Some(b'0'..=b'9' | b'-')) {
            return Err(self.expected("a number"));
        }
        let start = self.at;
        match number::scan(self.rest()) {
            Ok(len) => {
                self.at += len;
                Ok(self.text.get(start..self.at).unwrap_or_default())
            }
            Err(len) => Err(WireFault::new(start + len, "this is not a number")),
        }
    }

    /// Reads `null` if it is next. Returns true if it was.
    #[inline]
    pub fn null(&mut self) -> JsonResult<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// Reads an object. `member` gets each name, and has to read the value.
    ///
    /// Repeated names are not detected: the caller knows which members may occur once.
    ///
    /// # Errors
    ///
    /// The first fault, with the path of names to it. Objects deeper than [`DEPTH_MAX`] are a fault.
    #[inline]
    pub fn object<F>(&mut self, mut member: F) -> JsonResult<()>
    where
        F: FnMut(&mut Self, &Cow<'a, str>) -> JsonResult<()>,
    {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.enter()?;
        if self.peek() == Some(b'}') {
            return self.leave();
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in double quotes"));
            }
            let name = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.expected("`:`"));
            }
            self.at += 1;
            // Skip white space, so that errors of `member` point to the value's first character.
            self.peek();
            member(self, &name).map_err(|fault| fault.within(&name))?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.leave(),
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
    }

    /// Reads a list. `item` has to read each item, and gets its index, from 0.
    ///
    /// The number of items is not bounded here: `item` returns an error when there are too many.
    ///
    /// # Errors
    ///
    /// The first fault, with the index of its item. Lists deeper than [`DEPTH_MAX`] are a fault.
    pub fn list<F>(&mut self, mut item: F) -> JsonResult<()>
    where
        F: FnMut(&mut Self, usize) -> JsonResult<()>,
    {
        if self.peek() != Some(b'[') {
            return Err(self.expected("a list"));
        }
        self.enter()?;
        if self.peek() == Some(b']') {
            return self.leave();
        }
        for nth in 0_usize.. {
            item(self, nth).map_err(|fault| fault.within_item(nth))?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.leave(),
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
        Ok(())
    }

    /// Reads the next value and discards it.
    pub fn skip(&mut self) -> JsonResult<()> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.object(|reader, _| reader.skip()),
            Some(b'[') => self.list(|reader, _| reader.skip()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'0'..=b'9' | b'-') => self.number().map(drop),
            _ => Err(self.expected("a value")),
        }
    }

    /// Returns an error if anything but white space follows.
    pub fn end(&mut self) -> JsonResult<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("nothing more")),
        }
    }

    /// Returns the error that something else was expected here.
    #[cold]
    pub fn expected(&mut self, what: &str) -> Box<WireFault> {
        let found = match self.peek() {
            None => "the end",
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'0'..=b'9' | b'-') => "a number",
            _ => self.found_word(),
        };
        WireFault::new(self.at, format!("expected {what}, found {found}"))
    }

    fn found_word(&self) -> &'static str {
        const WORDS: [(&str, &str); 3] = [("true", "true"), ("false", "false"), ("null", "null")];
        const SIGNS: [(&str, &str); 5] = [
            ("}", "`}`"),
            ("]", "`]`"),
            (",", "`,`"),
            (":", "`:`"),
            ("'", "`'`"),
        ];
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut known = WORDS.iter().chain(&SIGNS);
        known
            .find(|(text, _)| rest.starts_with(text))
            .map_or("something that is not JSON", |(_, name)| name)
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn word(&mut self, word: &str) -> JsonResult<()> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Consumes the bracket that opens a list or an object.
    fn enter(&mut self) -> JsonResult<()> {
        if self.depth == DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} lists and objects inside each other");
            return Err(WireFault::new(self.at, message));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Consumes the bracket that closes a list or an object.
    #[expect(clippy::unnecessary_wraps, reason = "is what its callers return")]
    fn leave(&mut self) -> JsonResult<()> {
        self.depth = self.depth.saturating_sub(1);
        self.at += 1;
        Ok(())
    }
}
