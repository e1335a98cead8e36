//! Looks for identities in one request.

use super::jwt::{Claims, Refused};
use super::text::{identity, is_identity, only};
use super::{Asking, Client, Headers, Identity, Source, Trust, cookie, query, segment};
use super::{SAID_API_KEYS, SAID_USERS};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::net::IpAddr;

/// How many values of one name are told, besides the last.
const SAID_MAX: usize = 32;

/// What is said of a request, by name.
type Said<'a> = SmallVec<[(&'a str, Cow<'a, str>); 2]>;

/// One request, and what has been found out about it.
pub(super) struct Lookup<'a, 'q, H> {
    client: &'a Client,
    asking: &'q Asking<'a, H>,
    /// Whether what only proxies may say counts.
    trusted: bool,
    token: Seen,
    /// What is said by those of several tokens that are to be believed; nobody has asked where absent.
    several: Option<Vec<Claims>>,
}

/// What somebody will look at. Attributes are looked for always: guards and plans know their names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) user: bool,
    pub(crate) api_key: bool,
}

impl Wanted {
    pub(super) const ALL: Self = Self {
        user: true,
        api_key: true,
    };
}

/// What is known of the request's token.
enum Seen {
    /// Nobody has asked yet.
    Nothing,
    /// There is none.
    Absent,
    Refused(Refused),
    Believed(Claims),
}

impl<'a, 'q, H: Headers<'a>> Lookup<'a, 'q, H> {
    pub(super) fn new(client: &'a Client, asking: &'q Asking<'a, H>, trusted: bool) -> Self {
        Self {
            client,
            asking,
            trusted,
            token: Seen::Nothing,
            several: None,
        }
    }

    /// Who asks, at the address `ip`.
    pub(super) fn identity(mut self, ip: Option<IpAddr>, wanted: Wanted) -> Identity<'a> {
        let client = self.client;
        let mut attributes = SmallVec::new();
        for (name, sources) in &client.attributes {
            match self.first(sources) {
                Some(value) => attributes.push((name.as_str(), value)),
                None => self.say_all(name, sources, &mut attributes),
            }
        }
        let mut first = |sources, is_wanted: bool| is_wanted.then(|| self.first(sources)).flatten();
        let user = first(&client.user, wanted.user);
        let api_key = first(&client.api_key, wanted.api_key);
        if user.is_none() && wanted.user {
            self.say_all(SAID_USERS, &client.user, &mut attributes);
        }
        if api_key.is_none() && wanted.api_key {
            self.say_all(SAID_API_KEYS, &client.api_key, &mut attributes);
        }
        let cost = client.cost.as_ref();
        Identity {
            ip,
            user,
            api_key,
            cost: cost.map_or(1, |rule| rule.of(self.asking.headers)),
            attributes,
            token_refused: match self.token {
                Seen::Refused(why) => Some(why.word()),
                _ => None,
            },
        }
    }

    /// What is said more than once, and so not at all: whoever is listed must not get past a guard by
    /// saying something else as well. Under one name several times, which for limits is as good as absent.
    fn say_all(&mut self, name: &'a str, sources: &'a [Source], said: &mut Said<'a>) {
        for source in sources {
            let values = self.all(source);
            if let [_, _, ..] = *values {
                let last = values.len().saturating_sub(1);
                // Of very many, those that anybody would take: the first and the last.
                let some = values.into_iter().enumerate();
                let some = some.filter(|(nth, _)| *nth < SAID_MAX || *nth == last);
                said.extend(some.map(|(_, value)| (name, value)));
            }
        }
    }

    /// All that a source says.
    fn all(&mut self, source: &'a Source) -> Vec<Cow<'a, str>> {
        let headers = self.asking.headers;
        let text = |value: &'a [u8]| identity(value).map(Cow::Borrowed);
        match source {
            Source::Header { name, trust } if self.trusted || *trust == Trust::Anyone => {
                headers.values(name).filter_map(text).collect()
            }
            Source::Cookie(name) => {
                let lines = headers.values("cookie");
                let values = lines.flat_map(|line| cookie::values(line, name));
                values.filter_map(text).collect()
            }
            Source::Query(name) => {
                let path = self.asking.path.unwrap_or_default();
                let values = query::values(path, name);
                values.filter(|value| is_identity(value)).collect()
            }
            Source::Claim(name) => self.claimed(name),
            // These are there once.
            Source::Header { .. } | Source::Segment(_) => Vec::new(),
        }
    }

    /// What several tokens say, where a request carries several. Whichever of them the application takes
    /// is one that verifies. One that does so alone says it twice: it is no more than one of several.
    fn claimed(&mut self, name: &str) -> Vec<Cow<'a, str>> {
        let claims = match self.several.take() {
            Some(claims) => claims,
            None => self.see_several(),
        };
        let mut values: Vec<Cow<'a, str>> = claims
            .iter()
            .filter_map(|claims| claims.text(name).map(Cow::Owned))
            .collect();
        self.several = Some(claims);
        if let [alone] = &*values {
            values.push(alone.clone());
        }
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

    /// What the first of these says that says anything.
    fn first(&mut self, sources: &'a [Source]) -> Option<Cow<'a, str>> {
        sources.iter().find_map(|source| self.find(source))
    }

    fn find(&mut self, source: &'a Source) -> Option<Cow<'a, str>> {
        let headers = self.asking.headers;
        match source {
            Source::Header { name, trust } => {
                let counts = self.trusted || *trust == Trust::Anyone;
                let value = counts.then(|| only(headers.values(name)))??;
                identity(value).map(Cow::Borrowed)
            }
            Source::Cookie(name) => {
                let lines = headers.values("cookie");
                let value = only(lines.flat_map(|line| cookie::values(line, name)))?;
                identity(value).map(Cow::Borrowed)
            }
            Source::Query(name) => {
                let value = query::value(self.asking.path?, name)?;
                is_identity(&value).then_some(value)
            }
            Source::Segment(nth) => {
                let value = segment::value(self.asking.path?, *nth)?;
                is_identity(&value).then_some(value)
            }
            Source::Claim(name) => self.claims()?.text(name).map(Cow::Owned),
        }
    }

    /// What the request's token says, if there is one to be believed. It is verified once.
    fn claims(&mut self) -> Option<&Claims> {
        if let Seen::Nothing = self.token {
            self.token = self.see_token();
        }
        match &self.token {
            Seen::Believed(claims) => Some(claims),
            _ => None,
        }
    }

    fn see_token(&self) -> Seen {
        let Some(jwt) = &self.client.jwt else {
            return Seen::Absent;
        };
        let Some(token) = jwt.find(self.asking.headers) else {
            return Seen::Absent;
        };
        match jwt.claims(token, self.trusted, self.asking.now) {
            Ok(claims) => Seen::Believed(claims),
            Err(why) => Seen::Refused(why),
        }
    }
}
