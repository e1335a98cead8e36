//! The input from a frontend about a request, and the resulting identity.

use super::FoundCost;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// A cheap handle to the headers that a frontend has.
pub trait Headers<'a>: Copy {
    /// Returns the values of all lines of the header `name`, which is in lower case, in the order sent.
    fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]>;

    /// Returns false if the request has none of the headers `names`, which are in lower case: to look for all
    /// of them at once may cost less. Returns true if it has one, or did not look.
    #[inline]
    fn may_have(self, names: &[&str]) -> bool {
        !names.is_empty()
    }
}

/// Pairs of name and value, in the order sent; names in any case.
impl<'a, N: AsRef<str>, V: AsRef<str>> Headers<'a> for &'a [(N, V)] {
    #[inline]
    fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(sent, _)| sent.as_ref().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_ref().as_bytes())
    }
}

/// The facts that a frontend has before the client is identified.
pub struct RequestFacts<'a, H> {
    /// The address of the connected peer, if it is known.
    pub peer: Option<IpAddr>,
    /// The headers.
    pub headers: H,
    /// Path and query as sent.
    pub path: Option<&'a str>,
    /// Returns the time in seconds since the Unix epoch. Called only if the validity of a token depends on
    /// it.
    pub now: &'a dyn Fn() -> u64,
}

/// The identity of a client. Values that are missing or ambiguous are absent.
#[derive(Clone)]
pub struct ClientIdentity<'a> {
    /// The client's address, as determined through trusted proxies; IPv4-mapped is IPv4.
    pub ip: Option<IpAddr>,
    /// The user.
    pub user: Option<Cow<'a, str>>,
    /// The API key: a secret.
    pub api_key: Option<Cow<'a, str>>,
    /// The cost that the request states.
    pub cost: FoundCost<'a>,
    /// Attributes by name, including `consumer` and `token`. A value that was sent twice is listed twice.
    /// Everything except guards that refuse treats it as absent.
    pub attributes: SmallVec<[(&'a str, Cow<'a, str>); 2]>,
    /// The reason why the request's token was rejected.
    pub token_refused: Option<&'static str>,
}

impl<H> fmt::Debug for RequestFacts<'_, H> {
    // Headers and paths carry secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientIdentity<'_> {
    // The operator chooses the attributes, which may be tokens: only their names are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: SmallVec<[&str; 2]> = self.attributes.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Identity")
            .field("ip", &self.ip)
            .field("user", &self.user)
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("cost", &self.cost)
            .field("attributes", &names)
            .field("token_refused", &self.token_refused)
            .finish()
    }
}
