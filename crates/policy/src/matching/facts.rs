//! A request with one spelling for everything in it.

use super::host::canonical_host;
use super::normalise::normalise;
use crate::client::IdentityNeeds;
use crate::plan::PlanGroup;
use crate::{Descriptor, KeyPart, Request};
use std::net::IpAddr;

/// What conditions and keys look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchInput<'a> {
    pub(crate) request: &'a Request<'a>,
    /// IPv4-mapped is IPv4.
    pub(crate) ip: Option<IpAddr>,
    /// Lower case, without port.
    pub(crate) host: Option<&'a str>,
    /// Normalised.
    pub(crate) path: Option<&'a str>,
    /// The descriptor that a limit is met by; for the request as a whole, the only one it has.
    pub(crate) descriptor: Option<&'a Descriptor<'a>>,
    /// The group of the plan's subject, where a limit has a plan and it tells.
    pub(crate) group: Option<PlanGroup<'a>>,
}

/// What a policy looks at: host and path need no respelling where nobody does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) host: bool,
    pub(crate) path: bool,
    pub(crate) method: bool,
    pub(crate) who: IdentityNeeds,
}

/// Where what must be respelled is written.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    host: String,
    path: String,
}

// === impl Facts ===

impl<'a> MatchInput<'a> {
    #[inline]
    pub(crate) fn of(request: &'a Request<'a>, reads: Reads, spellings: &'a mut Spellings) -> Self {
        let host = request.host.filter(|_| reads.host);
        let path = request.path.filter(|_| reads.path);
        Self {
            request,
            ip: request.ip.map(|ip| ip.to_canonical()),
            host: host.and_then(|host| canonical_host(host, &mut spellings.host)),
            path: path.and_then(|path| normalise(path, &mut spellings.path)),
            descriptor: match request.descriptors {
                [only] => Some(only),
                _ => None,
            },
            group: None,
        }
    }

    /// The same about one descriptor.
    pub(crate) fn described_by(&self, descriptor: &'a Descriptor<'a>) -> Self {
        Self {
            descriptor: Some(descriptor),
            ..*self
        }
    }

    /// The values of a header, in the order sent.
    pub(crate) fn header(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.request
            .headers
            .iter()
            .filter(move |(sent, _)| sent.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The values of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.request
            .attributes
            .iter()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// The value of an entry of the descriptor: the only one of this name, or the one of this number.
    fn entry(&self, name: &str, nth: Option<u8>) -> Option<&'a str> {
        let entries = self.descriptor?.entries.iter();
        let same = entries.filter(|(known, _)| *known == name);
        let mut values = same.map(|(_, value)| *value);
        match nth {
            None => only(values),
            Some(nth) => values.nth(usize::from(nth).checked_sub(1)?),
        }
    }

    /// What a part of a key is, where it is text; `None` where it is absent.
    pub(crate) fn identity(&self, part: &KeyPart) -> Option<&'a str> {
        let value = match part {
            KeyPart::User => self.request.user,
            KeyPart::ApiKey => self.request.api_key,
            KeyPart::Header(name) => only(self.header(name)),
            KeyPart::Attr(name) => only(self.attribute(name)),
            KeyPart::Route => self.request.route,
            KeyPart::Host => self.host,
            KeyPart::Method => self.request.method,
            KeyPart::Path => self.path,
            KeyPart::DescriptorEntry { name, nth } => self.entry(name, *nth),
            KeyPart::Group => self.group.and_then(PlanGroup::text),
            KeyPart::Ip | KeyPart::Descriptor | KeyPart::Global => None,
        };
        value.filter(|value| !value.is_empty())
    }
}

/// The one there is. Of two, who is to say which one the application behind us will believe?
fn only<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let value = values.next();
    if values.next().is_some() { None } else { value }
}
