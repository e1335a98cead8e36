//! A question, in JSON: what is known of a request.

mod described;
#[cfg(test)]
mod described_tests;
mod field;
mod pairs;
#[cfg(test)]
mod tests;
mod texts;

use super::fault::{Fault, quote};
use super::json::{Reader, Result};
pub use described::{DESCRIPTORS_MAX, Described, ENTRIES_MAX};
use field::Field;
pub use pairs::Pairs;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use texts::{attributes, headers};
use tidegate::{Descriptor, Request};

/// How many values of headers a question may carry, and how many attributes.
pub const PAIRS_MAX: usize = 256;

/// How many questions a list may hold.
pub const LIST_MAX: usize = 100;

/// What is known of a request, borrowed from the text it was read from as far as that has no
/// escapes.
///
/// ```
/// use tidegate_server::wire::question::Question;
///
/// let question = Question::read(br#"{"ip": "192.0.2.1", "cost": 2}"#)?;
/// let pairs = question.pairs();
/// let request = question.request(&pairs);
/// assert_eq!((request.ip, request.cost), ("192.0.2.1".parse().ok(), 2));
///
/// let fault = Question::read(br#"{"ip": "192.0.2"}"#).unwrap_err();
/// assert_eq!(fault.to_string(), "ip: `192.0.2` is not an IP address");
/// # Ok::<(), Box<tidegate_server::wire::fault::Fault>>(())
/// ```
pub struct Question<'a> {
    /// The policy that is asked.
    pub policy: Option<Cow<'a, str>>,
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// Who is asking.
    pub user: Option<Cow<'a, str>>,
    /// The API key: a secret.
    pub api_key: Option<Cow<'a, str>>,
    /// The method.
    pub method: Option<Cow<'a, str>>,
    /// The host.
    pub host: Option<Cow<'a, str>>,
    /// The path.
    pub path: Option<Cow<'a, str>>,
    /// The route.
    pub route: Option<Cow<'a, str>>,
    /// Headers in the order written; a list of values is a header sent several times.
    pub headers: Texts<'a>,
    /// Attributes; no name is there twice.
    pub attributes: Texts<'a>,
    /// How much it takes, if it says so.
    pub cost: Option<u64>,
    /// For how long it is reserved, in milliseconds, if it is and says so.
    pub ttl_ms: Option<u64>,
    /// What a proxy says of it.
    pub described: Described<'a>,
}

/// Names and values.
pub type Texts<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

/// One question, or several that were asked together.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and most often the large one"
)]
pub enum Asked<'a> {
    /// One.
    One(Question<'a>),
    /// A list, which is answered by a list. It may be empty.
    Several(Vec<Question<'a>>),
}

impl<'a> Asked<'a> {
    /// Reads a question or a list of up to [`LIST_MAX`].
    pub fn read(text: &'a [u8]) -> Result<Self> {
        Self::read_each(text, one)
    }

    /// The same for what is to be reserved, which may say for how long.
    pub fn read_reserving(text: &'a [u8]) -> Result<Self> {
        Self::read_each(text, reserved)
    }

    fn read_each(
        text: &'a [u8],
        one: impl Fn(&mut Reader<'a>) -> Result<Question<'a>>,
    ) -> Result<Self> {
        let mut reader = Reader::new(text)?;
        let asked = if reader.peek() == Some(b'[') {
            let mut several = Vec::new();
            reader.list(|reader, nth| {
                if nth == LIST_MAX {
                    let message = format!("more than {LIST_MAX} questions in one list");
                    return Err(Fault::new(reader.at(), message));
                }
                several.push(one(reader)?);
                Ok(())
            })?;
            Self::Several(several)
        } else {
            Self::One(one(&mut reader)?)
        };
        reader.end()?;
        Ok(asked)
    }
}

// === impl Question ===

impl Default for Question<'_> {
    fn default() -> Self {
        Self {
            policy: None,
            ip: None,
            user: None,
            api_key: None,
            method: None,
            host: None,
            path: None,
            route: None,
            headers: Texts::new(),
            attributes: Texts::new(),
            cost: None,
            ttl_ms: None,
            described: Described::default(),
        }
    }
}

impl<'a> Question<'a> {
    /// Reads one question, to be decided now.
    pub fn read(text: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(text)?;
        let question = one(&mut reader)?;
        reader.end()?;
        Ok(question)
    }

    /// Reads one question of a trace into this one, which has to be as new, and answers with its
    /// time: milliseconds since the epoch.
    ///
    /// Into this one, because a question is large: moving it to where it is needed would take as
    /// long as reading it.
    #[inline]
    pub fn read_at(&mut self, text: &'a [u8]) -> Result<u64> {
        let mut reader = Reader::new(text)?;
        let at_ms = self.fill(&mut reader)?;
        reader.end()?;
        if self.ttl_ms.is_some() {
            let message = "this field belongs to reservations, and a trace has none";
            return Err(Fault::new(0, message).within(Field::TtlMs.name()));
        }
        at_ms.ok_or_else(|| {
            let message = "expected a time in milliseconds since the epoch, found none";
            Fault::new(reader.at(), message).within(Field::AtMs.name())
        })
    }

    /// The question as the limiter takes it, but for its [descriptors](Self::descriptors); `pairs` are
    /// its own.
    #[inline]
    pub fn request<'r, 'q: 'r>(&'q self, pairs: &'r Pairs<'q>) -> Request<'r> {
        Request {
            policy: self.policy.as_deref(),
            ip: self.ip,
            user: pairs.user,
            api_key: pairs.api_key,
            method: self.method.as_deref(),
            host: self.host.as_deref(),
            path: self.path.as_deref(),
            route: self.route.as_deref(),
            headers: &pairs.headers,
            attributes: &pairs.attributes,
            cost: pairs.cost.unwrap_or(1),
            descriptors: &[],
        }
    }

    /// Its descriptors, for [`Request::descriptors`]; `pairs` are its own.
    ///
    /// ```
    /// use tidegate_server::wire::question::Question;
    ///
    /// let question = Question::read(br#"{"descriptors": [{"entries": [{"key": "a", "value": "1"}]}]}"#)?;
    /// let pairs = question.pairs();
    /// let descriptors = question.descriptors(&pairs);
    /// let request = question.request(&pairs).descriptors(&descriptors);
    /// assert_eq!(request.descriptors[0].entries, [("a", "1")]);
    /// # Ok::<(), Box<tidegate_server::wire::fault::Fault>>(())
    /// ```
    #[inline]
    pub fn descriptors<'r>(&self, pairs: &'r Pairs<'_>) -> Vec<Descriptor<'r>> {
        self.described.descriptors(&pairs.entries)
    }

    /// Reads an object's fields, each at most once, and answers with `at_ms` if it is there.
    #[inline]
    fn fill(&mut self, reader: &mut Reader<'a>) -> Result<Option<u64>> {
        let mut at_ms = None;
        let mut seen = 0_u16;
        reader.object(|reader, name| {
            let Some(field) = Field::named(name) else {
                return Err(Fault::new(reader.at(), Field::unknown()));
            };
            if seen & field.bit() != 0 {
                return Err(Fault::new(reader.at(), "this field is there twice"));
            }
            seen |= field.bit();
            match field {
                Field::AtMs => {
                    at_ms = if reader.null()? {
                        None
                    } else {
                        Some(reader.whole()?)
                    }
                }
                Field::Policy => self.policy = reader.string_or_null()?,
                Field::Ip => self.ip = address(reader)?,
                Field::User => self.user = reader.string_or_null()?,
                Field::ApiKey => self.api_key = reader.string_or_null()?,
                Field::Method => self.method = reader.string_or_null()?,
                Field::Host => self.host = reader.string_or_null()?,
                Field::Path => self.path = reader.string_or_null()?,
                Field::Route => self.route = reader.string_or_null()?,
                Field::Headers => headers(reader, &mut self.headers)?,
                Field::Attributes => attributes(reader, &mut self.attributes)?,
                Field::TtlMs => self.ttl_ms = lifetime(reader)?,
                Field::Descriptors => self.described.read(reader)?,
                Field::Cost => {
                    self.cost = if reader.null()? {
                        None
                    } else {
                        Some(reader.whole()?)
                    }
                }
            }
            Ok(())
        })?;
        Ok(at_ms)
    }
}

// By way of the request, which hides secrets.
impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.pairs();
        let descriptors = self.descriptors(&pairs);
        self.request(&pairs).descriptors(&descriptors).fmt(f)
    }
}

/// Reads a question that is to be decided now.
fn one<'a>(reader: &mut Reader<'a>) -> Result<Question<'a>> {
    let start = reader.at();
    let question = reserved(reader)?;
    match question.ttl_ms {
        None => Ok(question),
        Some(_) => {
            let message = "this field belongs to reservations, which are made at /v1/reserve";
            Err(Fault::new(start, message).within(Field::TtlMs.name()))
        }
    }
}

/// Reads one that is to be reserved now.
fn reserved<'a>(reader: &mut Reader<'a>) -> Result<Question<'a>> {
    let start = reader.at();
    let mut question = Question::default();
    match question.fill(reader)? {
        None => Ok(question),
        Some(_) => {
            let message = "this field belongs to traces; a question is decided now";
            Err(Fault::new(start, message).within(Field::AtMs.name()))
        }
    }
}

fn lifetime(reader: &mut Reader<'_>) -> Result<Option<u64>> {
    let at = reader.at();
    if reader.null()? {
        return Ok(None);
    }
    match reader.whole()? {
        0 => Err(Fault::new(at, "expected at least 1, found 0")),
        ttl_ms => Ok(Some(ttl_ms)),
    }
}

fn address(reader: &mut Reader<'_>) -> Result<Option<IpAddr>> {
    let at = reader.at();
    let Some(text) = reader.string_or_null()? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(address) => Ok(Some(address)),
        Err(_) => {
            let message = format!("{} is not an IP address", quote(&text));
            Err(Fault::new(at, message))
        }
    }
}
