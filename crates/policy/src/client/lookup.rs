//! Looks for identities in one request.

use super::jwt::{Claims, Refused};
use super::text::{identity, is_identity, only};
use super::{Asking, Client, Headers, Identity, Source, Trust, cookie, query, segment};
use super::{SAID_API_KEYS, SAID_ATTRIBUTES, SAID_USERS, beside};
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
    fn say_all(&mut self, name: &'a str, silent: &'a [Source], said: &mut Said<'a>) {
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
    fn say_too(&mut self, name: &'a str, silent: &'a [Source], said: &mut Said<'a>) {
        let mut others = Said::new();
        self.say_all(name, silent, &mut others);
        let others = others.into_iter();
        said.extend(others.map(|(_, value)| (SAID_ATTRIBUTES, Cow::Owned(beside(name, &value)))));
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
    fn first(&mut self, sources: &'a [Source]) -> (Option<Cow<'a, str>>, &'a [Source]) {
        let mut numbered = sources.iter().enumerate();
        let found = numbered.find_map(|(nth, source)| Some((nth, self.find(source)?)));
        match found {
            Some((nth, value)) => (Some(value), sources.get(..nth).unwrap_or_default()),
            None => (None, sources),
        }
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
