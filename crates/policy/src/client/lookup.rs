//! The search for identities in one request.

use super::jwt::{Claims, TokenError};
use super::text::{identity, is_identity, only};
use super::{
    Client, ClientIdentity, Headers, IdentitySource, RequestFacts, Trust, cookie, query, segment,
};
use super::{SAID_API_KEYS, SAID_ATTRIBUTES, SAID_USERS, named_value};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::net::IpAddr;

/// The maximum number of ambiguous values per name, not counting the last.
const SAID_MAX: usize = 32;

/// Values found in a request, by name.
type NamedValues<'a> = SmallVec<[(&'a str, Cow<'a, str>); 2]>;

/// One request, and the results found so far.
pub(super) struct Lookup<'a, 'q, H> {
    client: &'a Client,
    asking: &'q RequestFacts<'a, H>,
    /// True if values that only proxies may set count.
    trusted: bool,
    token: TokenLookup,
    /// The claims of those tokens that verify, if the request carries several; `None` until they are read.
    several: Option<Vec<Claims>>,
}

/// The identities that are needed. Attributes are always read: guards and plans refer to them by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdentityNeeds {
    /// True if the user is needed.
    pub user: bool,
    /// True if the API key is needed.
    pub api_key: bool,
}

impl IdentityNeeds {
    pub(super) const ALL: Self = Self {
        user: true,
        api_key: true,
    };
}

/// The state of the request's token.
enum TokenLookup {
    /// Not read yet.
    Nothing,
    /// The request has no token.
    Absent,
    Refused(TokenError),
    Believed(Claims),
}

impl<'a, 'q, H: Headers<'a>> Lookup<'a, 'q, H> {
    pub(super) fn new(client: &'a Client, asking: &'q RequestFacts<'a, H>, trusted: bool) -> Self {
        Self {
            client,
            asking,
            trusted,
            token: TokenLookup::Nothing,
            several: None,
        }
    }

    /// Returns the identity of the client at the address `ip`.
    pub(super) fn identity(
        mut self,
        ip: Option<IpAddr>,
        wanted: IdentityNeeds,
    ) -> ClientIdentity<'a> {
        let client = self.client;
        let mut attributes = SmallVec::new();
        for (name, sources) in &client.attributes {
            let (value, silent) = self.first(sources);
            match value {
                None => self.add_ambiguous(name, silent, &mut attributes),
                Some(value) => {
                    attributes.push((name.as_str(), value));
                    self.add_ambiguous_for_guards(name, silent, &mut attributes);
                }
            }
        }
        let mut first = |name, sources, is_wanted: bool| {
            if !is_wanted {
                return None;
            }
            let (value, silent) = self.first(sources);
            self.add_ambiguous(name, silent, &mut attributes);
            value
        };
        let user = first(SAID_USERS, &client.user, wanted.user);
        let api_key = first(SAID_API_KEYS, &client.api_key, wanted.api_key);
        ClientIdentity {
            ip,
            user,
            api_key,
            cost: client.cost.of(self.asking.headers),
            attributes,
            token_refused: match self.token {
                TokenLookup::Refused(why) => Some(why.word()),
                _ => None,
            },
        }
    }

    /// Collects ambiguous values. They count as absent for limits, because the name then has several values.
    /// Guards see all of them: a listed client must not evade a guard by sending a second value.
    fn add_ambiguous(
        &mut self,
        name: &'a str,
        silent: &'a [IdentitySource],
        said: &mut NamedValues<'a>,
    ) {
        for source in silent {
            let mut values = self.all(source);
            if let [alone] = &*values {
                // The other values cannot be identities. Add this one twice, because it is still one of
                // several.
                values.push(alone.clone());
            }
            let last = values.len().saturating_sub(1);
            // If there are very many, keep those that an application would use: the first ones and the last.
            let some = values.into_iter().enumerate();
            let some = some.filter(|(nth, _)| *nth < SAID_MAX || *nth == last);
            said.extend(some.map(|(_, value)| (name, value)));
        }
    }

    /// Like [`add_ambiguous`](Self::add_ambiguous), where a later source supplies the effective value: only guards see
    /// these values, and separately.
    fn add_ambiguous_for_guards(
        &mut self,
        name: &'a str,
        silent: &'a [IdentitySource],
        said: &mut NamedValues<'a>,
    ) {
        let mut others = NamedValues::new();
        self.add_ambiguous(name, silent, &mut others);
        let others = others.into_iter();
        said.extend(
            others.map(|(_, value)| (SAID_ATTRIBUTES, Cow::Owned(named_value(name, &value)))),
        );
    }

    /// Returns all values of a source.
    fn all(&mut self, source: &'a IdentitySource) -> Vec<Cow<'a, str>> {
        let headers = self.asking.headers;
        let text = |value: &'a [u8]| identity(value).map(Cow::Borrowed);
        match source {
            IdentitySource::Header { name, trust } if self.trusted || *trust == Trust::Anyone => {
                headers.values(name).filter_map(text).collect()
            }
            IdentitySource::Cookie(name) => {
                let lines = headers.values("cookie");
                let values = lines.flat_map(|line| cookie::values(line, name));
                values.filter_map(text).collect()
            }
            IdentitySource::Query(name) => {
                let path = self.asking.path.unwrap_or_default();
                let values = query::values(path, name);
                values.filter(|value| is_identity(value)).collect()
            }
            IdentitySource::Claim(name) => self.claimed(name),
            // These sources have at most one value.
            IdentitySource::Header { .. } | IdentitySource::Segment(_) => Vec::new(),
        }
    }

    /// Returns the claim in each of several tokens of a request. The application uses one that verifies.
    fn claimed(&mut self, name: &str) -> Vec<Cow<'a, str>> {
        let claims = match self.several.take() {
            Some(claims) => claims,
            None => self.see_several(),
        };
        let values = claims.iter();
        let values = values.filter_map(|claims| claims.text(name).map(Cow::Owned));
        let values = values.collect();
        self.several = Some(claims);
        values
    }

    fn see_several(&self) -> Vec<Claims> {
        let Some(jwt) = &self.client.jwt else {
            return Vec::new();
        };
        let tokens = jwt.find_several(self.asking.headers).into_iter();
        let claims = tokens.map(|token| jwt.claims(token, self.trusted, self.asking.now));
        claims.filter_map(Result::ok).collect()
    }

    /// Returns the value of the first source that has exactly one, and the sources before it, which have none
    /// or several.
    fn first(
        &mut self,
        sources: &'a [IdentitySource],
    ) -> (Option<Cow<'a, str>>, &'a [IdentitySource]) {
        let mut numbered = sources.iter().enumerate();
        let found = numbered.find_map(|(nth, source)| Some((nth, self.find(source)?)));
        match found {
            Some((nth, value)) => (Some(value), sources.get(..nth).unwrap_or_default()),
            None => (None, sources),
        }
    }

    fn find(&mut self, source: &'a IdentitySource) -> Option<Cow<'a, str>> {
        let headers = self.asking.headers;
        match source {
            IdentitySource::Header { name, trust } => {
                let counts = self.trusted || *trust == Trust::Anyone;
                let value = counts.then(|| only(headers.values(name)))??;
                identity(value).map(Cow::Borrowed)
            }
            IdentitySource::Cookie(name) => {
                let lines = headers.values("cookie");
                let value = only(lines.flat_map(|line| cookie::values(line, name)))?;
                identity(value).map(Cow::Borrowed)
            }
            IdentitySource::Query(name) => {
                let value = query::value(self.asking.path?, name)?;
                is_identity(&value).then_some(value)
            }
            IdentitySource::Segment(nth) => {
                let value = segment::value(self.asking.path?, *nth)?;
                is_identity(&value).then_some(value)
            }
            IdentitySource::Claim(name) => self.claims()?.text(name).map(Cow::Owned),
        }
    }

    /// Returns the claims of the request's token if it verifies. The token is verified at most once.
    fn claims(&mut self) -> Option<&Claims> {
        if let TokenLookup::Nothing = self.token {
            self.token = self.see_token();
        }
        match &self.token {
            TokenLookup::Believed(claims) => Some(claims),
            _ => None,
        }
    }

    fn see_token(&self) -> TokenLookup {
        let Some(jwt) = &self.client.jwt else {
            return TokenLookup::Absent;
        };
        let Some(token) = jwt.find(self.asking.headers) else {
            return TokenLookup::Absent;
        };
        match jwt.claims(token, self.trusted, self.asking.now) {
            Ok(claims) => TokenLookup::Believed(claims),
            Err(why) => TokenLookup::Refused(why),
        }
    }
}
