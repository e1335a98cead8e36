//! Looks for identities in one request.

use super::jwt::{Claims, TokenError};
use super::text::{identity, is_identity, only};
use super::{
    Client, ClientIdentity, Headers, IdentitySource, RequestFacts, Trust, cookie, query, segment,
};
use super::{SAID_API_KEYS, SAID_ATTRIBUTES, SAID_USERS, beside};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::net::IpAddr;

/// How many values of one name are told, besides the last.
const SAID_MAX: usize = 32;

/// What is said of a request, by name.
type NamedValues<'a> = SmallVec<[(&'a str, Cow<'a, str>); 2]>;

/// One request, and what has been found out about it.
pub(super) struct Lookup<'a, 'q, H> {
    client: &'a Client,
    asking: &'q RequestFacts<'a, H>,
    /// Whether what only proxies may say counts.
    trusted: bool,
    token: TokenLookup,
    /// What is said by those of several tokens that are to be believed; nobody has asked where absent.
    several: Option<Vec<Claims>>,
}

/// What somebody will look at. Attributes are looked for always: guards and plans know their names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdentityNeeds {
    pub(crate) user: bool,
    pub(crate) api_key: bool,
}

impl IdentityNeeds {
    pub(super) const ALL: Self = Self {
        user: true,
        api_key: true,
    };
}

/// What is known of the request's token.
enum TokenLookup {
    /// Nobody has asked yet.
    Nothing,
    /// There is none.
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

    /// Who asks, at the address `ip`.
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
                None => self.say_all(name, silent, &mut attributes),
                Some(value) => {
                    attributes.push((name.as_str(), value));
                    self.say_too(name, silent, &mut attributes);
                }
            }
        }
        let mut first = |name, sources, is_wanted: bool| {
            if !is_wanted {
                return None;
            }
            let (value, silent) = self.first(sources);
            self.say_all(name, silent, &mut attributes);
            value
        };
        let user = first(SAID_USERS, &client.user, wanted.user);
        let api_key = first(SAID_API_KEYS, &client.api_key, wanted.api_key);
        let cost = client.cost.as_ref();
        ClientIdentity {
            ip,
            user,
            api_key,
            cost: cost.map_or(1, |rule| rule.of(self.asking.headers)),
            attributes,
            token_refused: match self.token {
                TokenLookup::Refused(why) => Some(why.word()),
                _ => None,
            },
        }
    }

    /// What is said more than once, and so not at all: whoever is listed must not get past a guard by
    /// saying something else as well. Under one name several times, which for limits is as good as absent.
    fn say_all(&mut self, name: &'a str, silent: &'a [IdentitySource], said: &mut NamedValues<'a>) {
        for source in silent {
            let mut values = self.all(source);
            if let [alone] = &*values {
                // What stood beside it is nobody's name. It is no more than one of several all the same.
                values.push(alone.clone());
            }
            let last = values.len().saturating_sub(1);
            // Of very many, those that anybody would take: the first and the last.
            let some = values.into_iter().enumerate();
            let some = some.filter(|(nth, _)| *nth < SAID_MAX || *nth == last);
            said.extend(some.map(|(_, value)| (name, value)));
        }
    }

    /// The same where a later source says what counts: for guards alone, and apart from it.
    fn say_too(&mut self, name: &'a str, silent: &'a [IdentitySource], said: &mut NamedValues<'a>) {
        let mut others = NamedValues::new();
        self.say_all(name, silent, &mut others);
        let others = others.into_iter();
        said.extend(others.map(|(_, value)| (SAID_ATTRIBUTES, Cow::Owned(beside(name, &value)))));
    }

    /// All that a source says.
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
            // These are there once.
            IdentitySource::Header { .. } | IdentitySource::Segment(_) => Vec::new(),
        }
    }

    /// What several tokens say, where a request carries several. Whichever of them the application takes
    /// is one that verifies.
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

    /// What the first of these says that says anything, and those before it, which do not, or say too much.
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

    /// What the request's token says, if there is one to be believed. It is verified once.
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
