//! A request in normalised form.

use crate::client::IdentityNeeds;
use crate::patterns::{canonical_host, normalise};
use crate::plan::PlanGroup;
use crate::{Descriptor, KeyPart, Request};
use std::net::IpAddr;

/// The input of conditions and keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchInput<'a> {
    pub(crate) request: &'a Request<'a>,
    /// IPv4-mapped is IPv4.
    pub(crate) ip: Option<IpAddr>,
    /// Lower case, without port.
    pub(crate) host: Option<&'a str>,
    /// Normalised.
    pub(crate) path: Option<&'a str>,
    /// The descriptor that matches a limit; for the request as a whole, its only one.
    pub(crate) descriptor: Option<&'a Descriptor<'a>>,
    /// The group of the plan's subject, if a limit has a plan that reports it.
    pub(crate) group: Option<PlanGroup<'a>>,
}

/// The fields that a policy reads. Host and path are normalised only if they are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldNeeds {
    pub(crate) host: bool,
    pub(crate) path: bool,
    pub(crate) method: bool,
    pub(crate) who: IdentityNeeds,
}

/// Buffers for normalised text.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    host: String,
    path: String,
}

// === impl MatchInput ===

impl<'a> MatchInput<'a> {
    #[inline]
    pub(crate) fn of(
        request: &'a Request<'a>,
        reads: FieldNeeds,
        spellings: &'a mut Spellings,
    ) -> Self {
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

    /// Returns the same input for one descriptor.
    pub(crate) fn described_by(&self, descriptor: &'a Descriptor<'a>) -> Self {
        Self {
            descriptor: Some(descriptor),
            ..*self
        }
    }

    /// Returns the values of a header, in the order sent.
    pub(crate) fn header(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.request
            .headers
            .iter()
            .filter(move |(sent, _)| sent.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// Returns the values of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.request
            .attributes
            .iter()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// Returns the value of an entry of the descriptor: the only one with this name, or the `nth` one.
    fn entry(&self, name: &str, nth: Option<u8>) -> Option<&'a str> {
        let entries = self.descriptor?.entries.iter();
        let same = entries.filter(|(known, _)| *known == name);
        let mut values = same.map(|(_, value)| *value);
        match nth {
            None => only(values),
            Some(nth) => values.nth(usize::from(nth).checked_sub(1)?),
        }
    }

    /// Returns the text of a part of a key, or `None` if it is absent or not text.
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

/// Returns the only value. With two values, the one that the application behind Tidegate would use is
/// unknown.
fn only<'a>(mut values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let value = values.next();
    if values.next().is_some() { None } else { value }
}
