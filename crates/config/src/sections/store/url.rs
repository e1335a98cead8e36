//! The URLs of Redis: a server, a list of nodes, or sentinels with the name of a master.
//!
//! All of them are lists of *places*, separated by commas:
//! `[scheme://][user[:password]@]host[:port][/path]`. No message quotes a place, because the position
//! of the password in a malformed one is unknown. Messages quote the whole text, with everything that
//! may be a password hidden.

use crate::excerpt::hide_passwords;
use crate::language::host::{HOST_MAX, TOO_MANY_COLONS, host_and_port};
use crate::language::words::one_of;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::text::closest;

/// The contents of a URL, with all its places combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: UrlScheme,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    /// The hosts, without duplicates, in the order written. The default port depends on the mode.
    pub(super) hosts: Vec<(String, Option<u16>)>,
    /// The name of the master, with sentinels.
    pub(super) master: Option<String>,
    pub(super) database: Option<u32>,
}

/// The transport, and the kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UrlScheme {
    pub(super) tls: bool,
    pub(super) sentinel: bool,
}

const SCHEMES: [(&str, UrlScheme); 8] = [
    ("redis", scheme(false, false)),
    ("rediss", scheme(true, false)),
    ("redis+sentinel", scheme(false, true)),
    ("rediss+sentinel", scheme(true, true)),
    ("valkey", scheme(false, false)),
    ("valkeys", scheme(true, false)),
    ("valkey+sentinel", scheme(false, true)),
    ("valkeys+sentinel", scheme(true, true)),
];

const EXAMPLE: &str = "expected `memory` or a URL, for example `redis://127.0.0.1:6379`";

const ESCAPES: &str = "in a user or password, write %2C for a comma, %2F for a slash, %3A for a colon, %40 for @, %25 for %";

const fn scheme(tls: bool, sentinel: bool) -> UrlScheme {
    UrlScheme { tls, sentinel }
}

/// A single place of a list, as written.
struct UrlAuthority {
    scheme: Option<UrlScheme>,
    user: Option<String>,
    password: Option<Secret>,
    host: (String, Option<u16>),
    /// The text after the slash; empty if there is none.
    path: String,
}

/// Adds the places of `text` to `url`. The scheme and the credentials of the first place apply to all.
/// The path may follow any of them.
pub(super) fn add(url: Option<Url>, text: &str) -> Result<Option<Url>, ConfigFault> {
    let mut url = url;
    let places = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    for place in places {
        let read = place_of(place).map_err(|why| why.about(text, place))?;
        let joined = join(url, read).map_err(|why| why.about(text, place))?;
        url = Some(joined);
    }
    Ok(url)
}

/// Returns true if this is a URL with a password.
pub(crate) fn has_password(text: &str) -> bool {
    let url = add(None, text).ok().flatten();
    url.is_some_and(|url| url.password.is_some())
}

/// The reason why a text is not a URL; [`UrlError::about`] adds the text.
struct UrlError {
    what: String,
    help: Option<String>,
}

impl UrlError {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: Some(help.into()),
        }
    }

    /// Returns an error that a stray character in a password may have caused.
    fn shape(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: None,
        }
    }

    fn about(self, text: &str, place: &str) -> ConfigFault {
        let help = self.help.unwrap_or_else(|| {
            let after_scheme = place.split_once("://").map_or(place, |(_, rest)| rest);
            let authority = after_scheme.split('/').next().unwrap_or_default();
            // The `@` is in another place: a comma or slash in the password split the text.
            let is_cut = text.contains('@') && !authority.contains('@');
            let help = if is_cut { ESCAPES } else { EXAMPLE };
            help.to_owned()
        });
        if !text.contains("://") {
            return ConfigFault::new("this is not the URL of a store").help(EXAMPLE);
        }
        let shown = ConfigFault::quote(&hide_passwords(text));
        ConfigFault::new(format!("{shown} {}", self.what)).help(help)
    }
}

fn place_of(text: &str) -> Result<UrlAuthority, UrlError> {
    if text == "memory" {
        let help = "remove it, or the others: a configuration has one store";
        return Err(UrlError::new("combines `memory` with servers", help));
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((name, rest)) => (Some(scheme_of(name)?), rest),
        None => (None, text),
    };
    if rest.contains(['?', '#']) {
        let help = "use fields such as `timeout`, `connections` and `tls` for settings; in a \
            password, write %3F for ? and %23 for #";
        return Err(UrlError::new("has a `?` or `#`", help));
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains('@') {
        return Err(UrlError::shape("has a `/` before its `@`"));
    }
    let (who, host) = match authority.rsplit_once('@') {
        Some((who, host)) => (Some(who), host),
        None => (None, authority),
    };
    let (user, password) = identity(who)?;
    Ok(UrlAuthority {
        scheme,
        user,
        password,
        host: host_of(host)?,
        path: path.to_owned(),
    })
}

fn scheme_of(name: &str) -> Result<UrlScheme, UrlError> {
    let found = SCHEMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, scheme)| *scheme).ok_or_else(|| {
        let names: Vec<&str> = SCHEMES.iter().map(|(known, _)| *known).collect();
        let help = match closest(name, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}://`?"),
            None => format!("expected `memory`, or a URL with {}", one_of(&names)),
        };
        UrlError::new("is not the URL of a supported store", help)
    })
}

/// Reads `user:password`, `:password` or `user`.
fn identity(who: Option<&str>) -> Result<(Option<String>, Option<Secret>), UrlError> {
    let Some(who) = who else {
        return Ok((None, None));
    };
    let (user, password) = match who.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (who, None),
    };
    let user = Some(decode(user)?).filter(|user| !user.is_empty());
    if user.is_some() && password.as_deref() == Some("") {
        return Err(UrlError::shape("has an empty password"));
    }
    let password = password.filter(|it| !it.is_empty());
    Ok((user, password.map(Secret::new)))
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Result<String, UrlError> {
    let refused = || {
        UrlError::new(
            "has a `%` without two hexadecimal digits in its user or password",
            ESCAPES,
        )
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else {
            return Err(refused());
        };
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|it| u8::try_from(it).ok())
        };
        let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(refused)?;
        bytes.push(high << 4 | low);
        rest = after;
    }
    String::from_utf8(bytes)
        .map_err(|_| UrlError::new("has a user or password that is not UTF-8", ESCAPES))
}

fn host_of(text: &str) -> Result<(String, Option<u16>), UrlError> {
    host_and_port(text).map_err(|what| match what {
        TOO_MANY_COLONS => UrlError::new(
            what,
            "write an IPv6 address in brackets, for example `redis://[::1]:6379`",
        ),
        what => UrlError::shape(what),
    })
}

/// Adds a place to a URL.
fn join(url: Option<Url>, place: UrlAuthority) -> Result<Url, UrlError> {
    let mut url = match url {
        None => Url {
            scheme: place
                .scheme
                .ok_or_else(|| UrlError::shape("has no scheme"))?,
            user: place.user,
            password: place.password,
            hosts: Vec::new(),
            master: None,
            database: None,
        },
        Some(url) => {
            if place.scheme.is_some_and(|scheme| scheme != url.scheme) {
                let help = "use the same scheme for all, or only in the first";
                return Err(UrlError::new("has addresses with different schemes", help));
            }
            let says_who = place.user.is_some() || place.password.is_some();
            if says_who && (place.user != url.user || place.password != url.password) {
                let help = "write the user and password only in the first address. In a \
                    password, write %2C for a comma";
                return Err(UrlError::new(
                    "has addresses with different users or passwords",
                    help,
                ));
            }
            url
        }
    };
    if !url.hosts.contains(&place.host) {
        url.hosts.push(place.host);
    }
    path(&mut url, &place.path)?;
    Ok(url)
}

/// Reads the path: a database, or with sentinels the name of a master and a database.
fn path(url: &mut Url, path: &str) -> Result<(), UrlError> {
    let mut segments = path.trim_end_matches('/').split('/').map(str::to_owned);
    if url.scheme.sentinel {
        let master = segments.next().filter(|it| !it.is_empty());
        if master.as_deref().is_some_and(|it| !is_master(it)) {
            let help = "use letters, digits, `-`, `_` and `.`, for example `redis+sentinel://a,b/mymaster`";
            return Err(UrlError::new("has an invalid master name", help));
        }
        agree(&mut url.master, master, "masters")?;
    }
    let database = segments.next().filter(|it| !it.is_empty());
    let database = database.map(|text| database_of(&text, url.scheme));
    agree(&mut url.database, database.transpose()?, "databases")?;
    match segments.next() {
        None => Ok(()),
        Some(_) => Err(UrlError::shape("has too many slashes")),
    }
}

/// Returns true if sentinels accept this name for a master.
pub(super) fn is_master(name: &str) -> bool {
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.len() <= HOST_MAX && name.chars().all(belongs)
}

fn database_of(text: &str, scheme: UrlScheme) -> Result<u32, UrlError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<u32> = text.parse().ok().filter(|_| digits);
    number
        .filter(|number| i32::try_from(*number).is_ok())
        .ok_or_else(|| {
            let help = if scheme.sentinel {
                "write /MASTER or /MASTER/NUMBER after the hosts"
            } else {
                "write a number such as /0 after the host; for a master name, use \
                 `redis+sentinel://`"
            };
            UrlError::new("has a database that is not a number", help)
        })
}

/// Sets `known`, or returns an error if another place has set a different value.
fn agree<T: PartialEq>(known: &mut Option<T>, said: Option<T>, what: &str) -> Result<(), UrlError> {
    match (&known, said) {
        (_, None) => {}
        (Some(known), Some(said)) if *known == said => {}
        (Some(_), Some(_)) => {
            let help = "write it once, after the last host";
            return Err(UrlError::new(
                format!("has addresses with different {what}"),
                help,
            ));
        }
        (None, said) => *known = said,
    }
    Ok(())
}
