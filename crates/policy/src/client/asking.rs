//! What a door knows of a request, and what is made of it.

use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Headers as a door has them: a cheap handle to them.
pub trait Headers<'a>: Copy {
    /// The values of all lines of the header `name`, which is in lower case, in the order sent.
    fn values(self, name: &str) -> impl Iterator<Item = &'a [u8]>;
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

/// What a door knows of a request before anybody has said who asks.
pub struct RequestFacts<'a, H> {
    /// Who is at the other end of the connection, if that is known.
    pub peer: Option<IpAddr>,
    /// The headers.
    pub headers: H,
    /// Path and query as sent.
    pub path: Option<&'a str>,
    /// The time in seconds since the Unix epoch. Asked only if there is a token whose validity
    /// depends on it.
    pub now: &'a dyn Fn() -> u64,
}

/// Who asks. Whatever could not be found out, or was said twice, is absent.
#[derive(Clone)]
pub struct ClientIdentity<'a> {
    /// The client's address, as far as trusted proxies tell it; IPv4-mapped is IPv4.
    pub ip: Option<IpAddr>,
    /// The user.
    pub user: Option<Cow<'a, str>>,
    /// The API key: a secret.
    pub api_key: Option<Cow<'a, str>>,
    /// How much the request takes; at least 1.
    pub cost: u64,
    /// Attributes by name; `consumer` and `token` among them. What is said twice is there twice, which is
    /// as good as absent but for guards that refuse.
    pub attributes: SmallVec<[(&'a str, Cow<'a, str>); 2]>,
    /// Why a token that the request carries was not believed.
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
    // Attributes are whatever the operator chose, tokens too: their names do.
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
