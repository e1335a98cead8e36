//! A check request in JSON: the facts about a request.

mod described;
#[cfg(test)]
mod described_tests;
mod field;
mod pairs;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
mod texts;

use super::cost;
use super::fault::{WireFault, quote};
use super::json::{JsonReader, JsonResult};
use super::members::JsonMember;
pub use described::{DESCRIPTORS_MAX, ENTRIES_MAX, QuestionDescriptors};
use field::QuestionField;
pub use pairs::QuestionPairs;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use texts::{attributes, headers};
use tidegate::{CostMap, Descriptor, PermitTerm, Request};

/// The maximum number of header values of a check request, and of attributes.
pub const PAIRS_MAX: usize = 256;

/// The maximum number of check requests in a list.
pub const LIST_MAX: usize = 100;

/// The facts about a request. Text without escapes is borrowed from the input.
///
/// ```
/// use tidegate_frontends::wire::question::JsonQuestion;
///
/// let question = JsonQuestion::read(br#"{"ip": "192.0.2.1", "cost": 2}"#)?;
/// let pairs = question.pairs();
/// let request = question.request(&pairs);
/// assert_eq!((request.ip, request.cost.number()), ("192.0.2.1".parse().ok(), Some(2)));
///
/// let fault = JsonQuestion::read(br#"{"ip": "192.0.2"}"#).unwrap_err();
/// assert_eq!(fault.to_string(), "ip: `192.0.2` is not an IP address");
/// # Ok::<(), Box<tidegate_frontends::wire::fault::WireFault>>(())
/// ```
pub struct JsonQuestion<'a> {
    /// The policy to apply.
    pub policy: Option<Cow<'a, str>>,
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// The user.
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
    pub headers: NamedTexts<'a>,
    /// Attributes; no name is there twice.
    pub attributes: NamedTexts<'a>,
    /// The cost, if the check request contains one.
    pub cost: Option<CostMap<'a>>,
    /// The lifetime of a reservation in milliseconds, if the check request contains one.
    pub ttl_ms: Option<u64>,
    /// The descriptors from a proxy.
    pub described: QuestionDescriptors<'a>,
}

/// Names and values.
pub type NamedTexts<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 4]>;

/// One check request, or several sent together.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time, and most often the large one"
)]
pub enum QuestionBody<'a> {
    /// One check request.
    One(JsonQuestion<'a>),
    /// A list, which gets a list in response. It may be empty.
    Several(Vec<JsonQuestion<'a>>),
}

impl<'a> QuestionBody<'a> {
    /// Reads a check request or a list of up to [`LIST_MAX`].
    pub fn read(text: &'a [u8]) -> JsonResult<Self> {
        Self::read_each(text, one)
    }

    /// Reads reservation requests in the same way; these may contain `ttl_ms`.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), except that `ttl_ms` is allowed.
    pub fn read_reserving(text: &'a [u8]) -> JsonResult<Self> {
        Self::read_each(text, reserved)
    }

    fn read_each(
        text: &'a [u8],
        one: impl Fn(&mut JsonReader<'a>) -> JsonResult<JsonQuestion<'a>>,
    ) -> JsonResult<Self> {
        let mut reader = JsonReader::new(text)?;
        let asked = if reader.peek() == Some(b'[') {
            let mut several = Vec::new();
            reader.list(|reader, nth| {
                if nth == LIST_MAX {
                    let message = format!("more than {LIST_MAX} check requests in one list");
                    return Err(WireFault::new(reader.at(), message));
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

// === impl JsonQuestion ===

impl Default for JsonQuestion<'_> {
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
            headers: NamedTexts::new(),
            attributes: NamedTexts::new(),
            cost: None,
            ttl_ms: None,
            described: QuestionDescriptors::default(),
        }
    }
}

impl<'a> JsonQuestion<'a> {
    /// Reads one check request, to be decided now.
    pub fn read(text: &'a [u8]) -> JsonResult<Self> {
        let mut reader = JsonReader::new(text)?;
        let question = one(&mut reader)?;
        reader.end()?;
        Ok(question)
    }

    /// Reads one check request, which may have `ttl_ms`: to acquire permits for a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read), except that `ttl_ms` is allowed.
    pub fn read_reserving(text: &'a [u8]) -> JsonResult<Self> {
        let mut reader = JsonReader::new(text)?;
        let question = reserved(&mut reader)?;
        reader.end()?;
        Ok(question)
    }

    /// Reads one check request of a trace into this one, which must be in its default state. Returns its time
    /// in milliseconds since the epoch.
    ///
    /// Reads in place because a check request is large: moving it to its destination would take as long as
    /// reading it.
    ///
    /// # Errors
    ///
    /// A syntax error, an unknown or invalid field, a missing time, or a `ttl_ms`. A fault names the field.
    #[inline]
    pub fn read_at(&mut self, text: &'a [u8]) -> JsonResult<u64> {
        let mut reader = JsonReader::new(text)?;
        let at_ms = self.fill(&mut reader)?;
        reader.end()?;
        if self.ttl_ms.is_some() {
            let message = "this field is only for reservations, which traces do not support";
            return Err(WireFault::new(0, message).within(QuestionField::TtlMs.name()));
        }
        at_ms.ok_or_else(|| {
            let message = "expected a time in milliseconds since the epoch, found none";
            WireFault::new(reader.at(), message).within(QuestionField::AtMs.name())
        })
    }

    /// Returns the request for the limiter, without its [descriptors](Self::descriptors). `pairs` must be
    /// those of this check request.
    #[inline]
    pub fn request<'r, 'q: 'r>(&'q self, pairs: &'r QuestionPairs<'q>) -> Request<'r> {
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
            cost: pairs.cost,
            descriptors: &[],
            // Callers of a protocol do not say when the request ends.
            permit: Some(&PermitTerm::HOLD),
        }
    }

    /// Returns the descriptors, for [`Request::descriptors`]. `pairs` must be those of this check request.
    ///
    /// ```
    /// use tidegate_frontends::wire::question::JsonQuestion;
    ///
    /// let question = JsonQuestion::read(br#"{"descriptors": [{"entries": [{"key": "a", "value": "1"}]}]}"#)?;
    /// let pairs = question.pairs();
    /// let descriptors = question.descriptors(&pairs);
    /// let request = question.request(&pairs).descriptors(&descriptors);
    /// assert_eq!(request.descriptors[0].entries, [("a", "1")]);
    /// # Ok::<(), Box<tidegate_frontends::wire::fault::WireFault>>(())
    /// ```
    #[inline]
    pub fn descriptors<'r>(&'r self, pairs: &'r QuestionPairs<'_>) -> Vec<Descriptor<'r>> {
        self.described.descriptors(&pairs.entries)
    }

    /// Reads an object's fields, each at most once, and returns `at_ms` if it is there.
    #[inline]
    fn fill(&mut self, reader: &mut JsonReader<'a>) -> JsonResult<Option<u64>> {
        let mut at_ms = None;
        let mut seen = 0_u16;
        reader.object(|reader, name| {
            let Some(field) = QuestionField::named(name) else {
                return Err(WireFault::new(reader.at(), QuestionField::unknown()));
            };
            if seen & field.bit() != 0 {
                return Err(WireFault::new(reader.at(), "duplicate field"));
            }
            seen |= field.bit();
            match field {
                QuestionField::AtMs => {
                    at_ms = if reader.null()? {
                        None
                    } else {
                        Some(reader.whole()?)
                    }
                }
                QuestionField::Policy => self.policy = reader.string_or_null()?,
                QuestionField::Ip => self.ip = address(reader)?,
                QuestionField::User => self.user = reader.string_or_null()?,
                QuestionField::ApiKey => self.api_key = reader.string_or_null()?,
                QuestionField::Method => self.method = reader.string_or_null()?,
                QuestionField::Host => self.host = reader.string_or_null()?,
                QuestionField::Path => self.path = reader.string_or_null()?,
                QuestionField::Route => self.route = reader.string_or_null()?,
                QuestionField::Headers => headers(reader, &mut self.headers)?,
                QuestionField::Attributes => attributes(reader, &mut self.attributes)?,
                QuestionField::TtlMs => self.ttl_ms = lifetime(reader)?,
                QuestionField::Descriptors => self.described.read(reader)?,
                QuestionField::Cost => {
                    self.cost = if reader.null()? {
                        None
                    } else {
                        Some(cost::read(reader)?)
                    }
                }
            }
            Ok(())
        })?;
        Ok(at_ms)
    }
}

// Format the `Request`, which hides secrets.
impl fmt::Debug for JsonQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.pairs();
        let descriptors = self.descriptors(&pairs);
        self.request(&pairs).descriptors(&descriptors).fmt(f)
    }
}

/// Reads a check request that is to be decided now.
fn one<'a>(reader: &mut JsonReader<'a>) -> JsonResult<JsonQuestion<'a>> {
    let start = reader.at();
    let question = reserved(reader)?;
    match question.ttl_ms {
        None => Ok(question),
        Some(_) => {
            let message = "this field is only for reservations (/v1/reserve)";
            Err(WireFault::new(start, message).within(QuestionField::TtlMs.name()))
        }
    }
}

/// Reads a reservation request that is to be decided now.
fn reserved<'a>(reader: &mut JsonReader<'a>) -> JsonResult<JsonQuestion<'a>> {
    let start = reader.at();
    let mut question = JsonQuestion::default();
    match question.fill(reader)? {
        None => Ok(question),
        Some(_) => {
            let message = "this field is only for traces";
            Err(WireFault::new(start, message).within(QuestionField::AtMs.name()))
        }
    }
}

/// Reads a time in milliseconds, at least 1.
pub(crate) fn lifetime(reader: &mut JsonReader<'_>) -> JsonResult<Option<u64>> {
    let at = reader.at();
    if reader.null()? {
        return Ok(None);
    }
    match reader.whole()? {
        0 => Err(WireFault::new(at, "expected at least 1, found 0")),
        ttl_ms => Ok(Some(ttl_ms)),
    }
}

fn address(reader: &mut JsonReader<'_>) -> JsonResult<Option<IpAddr>> {
    let at = reader.at();
    let Some(text) = reader.string_or_null()? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(address) => Ok(Some(address)),
        Err(_) => {
            let message = format!("{} is not an IP address", quote(&text));
            Err(WireFault::new(at, message))
        }
    }
}
