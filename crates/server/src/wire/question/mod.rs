//! A question, in JSON: what is known of a request.

mod field;
mod pairs;
#[cfg(test)]
mod tests;
mod texts;

use super::fault::{Fault, quote};
use super::json::{Reader, Result};
use field::Field;
pub use pairs::Pairs;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use texts::{attributes, headers};
use tidegate::Request;

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
        at_ms.ok_or_else(|| {
            let message = "expected a time in milliseconds since the epoch, found none";
            Fault::new(reader.at(), message).within(Field::AtMs.name())
        })
    }

    /// The question as the limiter takes it; `pairs` are its own.
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
        self.request(&pairs).fmt(f)
    }
}

/// Reads a question that is to be decided now.
fn one<'a>(reader: &mut Reader<'a>) -> Result<Question<'a>> {
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
