//! Response heads that have the same fields as an earlier one on their connection.
//!
//! A server sends nearly the same head again and again: the same status line and the same names in the same
//! order, and most of the values: of a usual head only the date changes, once a second. Such a head is
//! compared with the earlier one, and only the values that differ are read: no name is parsed, hashed and
//! inserted again. The parser reads every other head, so this module accepts
//! only names that the parser has accepted before.

use super::framing::FramingFields;
use super::read::{ConnectionFields, HEAD_BYTES, ResponseHead};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, TRANSFER_ENCODING};
use http::{Extensions, HeaderMap, HeaderValue};
use memchr::memchr;

/// The most fields of a head that is remembered.
const FIELDS_MAX: usize = 32;

/// The longest value that is remembered.
const VALUE_MAX: usize = 128;

/// The number of unlike heads in a row after which another one is remembered at the latest.
const UNLIKE_MAX: u32 = 64;

/// The head that a connection remembers.
#[derive(Debug, Default)]
pub(super) struct HeadMemory {
    template: Option<Box<HeadTemplate>>,
    /// The number of heads in a row that were unlike the remembered one.
    unlike: u32,
}

/// A head, with the values that its fields had the last time they were remembered.
#[derive(Debug)]
struct HeadTemplate {
    /// The status line, with its end.
    line: Box<[u8]>,
    /// The result for a head like this one, except for values that differ.
    head: ResponseHead,
    fields: Vec<TemplateField>,
}

/// A field of a head, without its value.
#[derive(Debug)]
struct TemplateField {
    /// The name as it was sent, with the colon and one space.
    prefix: Box<[u8]>,
    kind: FieldKind,
    /// The number of values in a row that were unlike the remembered one.
    unlike: u32,
}

/// The use of a field.
#[derive(Debug)]
enum FieldKind {
    /// `Connection`, which is not forwarded.
    Connection,
    /// `Transfer-Encoding`, which is not forwarded.
    Encoding,
    /// `Content-Length`.
    Length,
    /// Any other field.
    Plain(HeaderName),
}

impl HeadMemory {
    /// Reads a head from the start of `all` into `head` if it is like the remembered one, and returns its
    /// length. Otherwise `head` is unchanged.
    pub(super) fn read(&mut self, all: &Bytes, head: &mut ResponseHead) -> Option<usize> {
        let length = self.template.as_mut()?.read(all, head)?;
        self.unlike = 0;
        Some(length)
    }

    /// Remembers a head that the parser has read. `text` is its text and `names` are the names in it.
    pub(super) fn remember<'a>(
        &mut self,
        text: &[u8],
        head: &ResponseHead,
        names: impl Iterator<Item = &'a str>,
    ) {
        self.unlike = self.unlike.saturating_add(1);
        // A server whose heads vary is not to pay for a memory that is of no use to it.
        if self.unlike.is_power_of_two() || self.unlike.is_multiple_of(UNLIKE_MAX) {
            self.template = HeadTemplate::new(text, head, names).map(Box::new);
        }
    }
}

impl HeadTemplate {
    /// Returns the template of a head; `None` if it is unusual.
    fn new<'a>(
        text: &[u8],
        head: &ResponseHead,
        names: impl Iterator<Item = &'a str>,
    ) -> Option<Self> {
        let (line, mut rest) = line(text)?;
        let is_usual = line.starts_with(b"HTTP/1.1 ") && line.ends_with(b"\r\n");
        // A name that occurs twice has no single value.
        let is_distinct = head.headers.len() == head.headers.keys_len();
        if !is_usual || !is_distinct || !head.extensions.is_empty() {
            return None;
        }
        let mut fields = Vec::new();
        for name in names {
            let (field, after) = self::line(rest)?;
            let (prefix, value) = field.split_at_checked(name.len().saturating_add(2))?;
            let is_spaced = prefix.strip_prefix(name.as_bytes()) == Some(b": ");
            if !is_spaced || !value.ends_with(b"\r\n") || fields.len() == FIELDS_MAX {
                return None;
            }
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            fields.push(TemplateField {
                prefix: prefix.into(),
                kind: FieldKind::of(name, &head.headers)?,
                unlike: 0,
            });
            rest = after;
        }
        let mut headers = head.headers.clone();
        for value in headers.values_mut() {
            *value = HeaderValue::from_static("");
        }
        (rest == b"\r\n").then(|| Self {
            line: line.into(),
            head: ResponseHead {
                headers,
                status: head.status,
                extensions: Extensions::new(),
                extent: head.extent,
                keeps: head.keeps,
            },
            fields,
        })
    }

    /// Reads a head like this one.
    fn read(&mut self, all: &Bytes, head: &mut ResponseHead) -> Option<usize> {
        let mut rest = all.strip_prefix(&*self.line)?;
        let mut headers = self.head.headers.clone();
        let mut slots = headers.iter_mut().zip(self.head.headers.values_mut());
        let mut framing = FramingFields::default();
        let mut connection = ConnectionFields::default();
        for TemplateField {
            prefix,
            kind,
            unlike,
        } in &mut self.fields
        {
            let field = rest.strip_prefix(&**prefix)?;
            let (value, end) = field.split_at_checked(memchr(b'\r', field)?)?;
            rest = end.strip_prefix(b"\r\n")?;
            let name = match kind {
                // Its value goes nowhere that would check it: a bare line feed in it begins a field to others.
                FieldKind::Connection if is_printable(value) && connection.add(value) => continue,
                FieldKind::Encoding if value == b"chunked" => {
                    framing.encoding(value);
                    continue;
                }
                FieldKind::Connection | FieldKind::Encoding => return None,
                FieldKind::Length => {
                    framing.length(value).ok()?;
                    &CONTENT_LENGTH
                }
                FieldKind::Plain(name) => name,
            };
            // The parser trims values. Those that need it are rare.
            if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value {
                return None;
            }
            let ((slot, value_of), remembered) = slots.next()?;
            if slot != name {
                return None;
            }
            // Most values are those of the head before: then there is nothing to check and to share.
            if remembered.as_bytes() == value {
                *unlike = 0;
                continue;
            }
            *value_of = HeaderValue::from_maybe_shared(all.slice_ref(value)).ok()?;
            *unlike = unlike.saturating_add(1);
            // A copy, because the original shares the memory of the whole head. A field whose value always
            // differs is not to be copied each time.
            if value.len() <= VALUE_MAX && unlike.is_power_of_two() {
                *remembered = HeaderValue::from_bytes(value).ok()?;
            }
        }
        let length = all.len().checked_sub(rest.strip_prefix(b"\r\n")?.len())?;
        if length > HEAD_BYTES {
            return None;
        }
        head.status = self.head.status;
        head.headers = headers;
        head.extensions = Extensions::new();
        head.extent = framing.extent();
        head.keeps = connection.keeps(true);
        Some(length)
    }
}

impl FieldKind {
    /// Returns the kind of the field `name` of a head that has these headers to forward.
    fn of(name: HeaderName, headers: &HeaderMap) -> Option<Self> {
        let is_forwarded = headers.contains_key(&name);
        match name {
            // It names other fields, which the parser has to forward with it.
            CONNECTION if is_forwarded => None,
            CONNECTION => Some(Self::Connection),
            TRANSFER_ENCODING => Some(Self::Encoding),
            CONTENT_LENGTH => Some(Self::Length),
            name => is_forwarded.then_some(Self::Plain(name)),
        }
    }
}

/// Returns true if a value has printable ASCII characters only.
fn is_printable(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Splits `text` after its first line.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    text.split_at_checked(memchr(b'\n', text)?.checked_add(1)?)
}
