//! The form of buckets in Redis.
//!
//! *Packed* is ours: one short string for all bands of a subject. *Open* is for people and for other
//! systems: keys and values as the documents of four earlier systems show them, so that their tools keep
//! working and their state remains valid. If a documented value is not exact, Tidegate adds a field that is.
//! Nothing is lost to rounding as long as only Tidegate writes, and a value that another system wrote is
//! read as its document defines. The tables are in `docs/reference/redis-keys.md`.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the choice, and how keys of the open layout are named |
//! | `template` | the name of a key, piece by piece |
//! | `key` | a key on its way to the script: form, name, field |
//! | `value` | from what the script replied to a state |
//! | `text` | numbers as the documents write them |
//! | `tokens` | token buckets in two hashes |
//! | `window` | fixed windows of whole seconds |
//! | `call` | the further arguments of the open script |
//! | `literal` | values as clients send them, and hashes in their place |

mod call;
mod key;
mod literal;
mod template;
mod text;
mod tokens;
mod value;
mod window;

#[cfg(test)]
mod tests;

pub(crate) use call::{push_forms, weight};
pub(crate) use key::{Form, OpenKey};
pub use template::KeyPiece;
pub(crate) use value::{find_in, switched};
pub(crate) use window::{Rounding, receipt};

use crate::request::RedisKey;
use foldhash::quality::RandomState;
use hashbrown::HashMap;
use literal::Hashing;
use std::borrow::Cow;
use template::{BucketParts, KeySubject};
use tidegate_core::{Algorithm, BandId, Quota};

/// The form of buckets in Redis.
#[derive(Clone, Debug, Default)]
pub enum Layout {
    /// One short string for all bands of a subject.
    #[default]
    Packed,
    /// Keys and values that people and other systems can read.
    Open(OpenLayout),
}

/// The naming of keys in the open layout.
///
/// A bucket is named `policy/limit/subject`. The entry of `policy/limit` defines the names of its keys.
/// Buckets of other limits are named by their own name and the number of their band, after the store's
/// prefix.
///
/// ```
/// use tidegate_core::Quota;
/// use tidegate_redis::{OpenLayout, OpenLimit, KeyPiece};
///
/// let quota = Quota::new(10, 1_000_000).label("10-per-second").build().unwrap();
/// let layout = OpenLayout::new().limit(
///     "api-limits/rule-1",
///     OpenLimit {
///         template: vec![
///             KeyPiece::Text("fluxgate:".to_owned()),
///             KeyPiece::Policy,
///             KeyPiece::Text(":".to_owned()),
///             KeyPiece::Limit,
///             KeyPiece::Text(":".to_owned()),
///             KeyPiece::Key,
///             KeyPiece::Text(":".to_owned()),
///             KeyPiece::Band,
///         ],
///         bands: vec![(quota.id(), "10-per-second".to_owned())],
///         ..OpenLimit::default()
///     },
/// );
/// let (name, field) = layout.name(b"api-limits/rule-1/ip:192.168.1.100", &quota).unwrap();
/// assert_eq!(name, b"fluxgate:api-limits:rule-1:192.168.1.100:10-per-second");
/// assert_eq!(field, None);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct OpenLayout {
    limits: HashMap<Box<[u8]>, OpenLimit, RandomState>,
    /// The form of buckets whose limit has no entry.
    unknown: TokenFields,
    /// Hashes values in names that no template makes.
    hashing: Option<Hashing>,
}

/// The naming of the keys of one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenLimit {
    /// The name, piece by piece. With [`KeyPiece::Band`] in it, token buckets are kept in the fields
    /// of [`TokenFields::Nanos`], else in those of [`TokenFields::Millis`]. For a fixed window it
    /// is the name of the hash of which each subject is a field.
    pub template: Vec<KeyPiece>,
    /// The text for [`KeyPiece::Band`], by [`Quota::family`]; a band that is missing here appears as a
    /// number. If changed numbers start with new buckets, the name ends with `~` and
    /// [`Quota::reset_number`] in eight hexadecimal digits.
    pub bands: Vec<(BandId, String)>,
    /// Characters that stay literal in the values of names, although they are escaped in the names of
    /// buckets; except for a `#` at the beginning, which begins a hash. Default: none. The caller makes
    /// sure that no two buckets share a key because of them.
    pub literal: String,
}

/// The fields of a token bucket's hash, in addition to ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenFields {
    /// `tokens` with its fraction, and `lastRefill` in milliseconds.
    #[default]
    Millis,
    /// Whole `tokens`, and `last_refill_nanos`.
    Nanos,
}

// === impl OpenLayout ===

impl OpenLayout {
    /// Knows no limit yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the keys of a limit. `name` is `policy/limit`, as the names of its buckets begin.
    pub fn limit(mut self, name: &str, limit: OpenLimit) -> Self {
        self.limits.insert(name.as_bytes().into(), limit);
        self
    }

    /// Keeps the token buckets of limits that it does not know in these fields.
    pub fn unknown_tokens(self, fields: TokenFields) -> Self {
        Self {
            unknown: fields,
            ..self
        }
    }

    /// Hashes values in all names that no template makes, packed ones above all: those of which `hash`,
    /// by their labels, returns a hash.
    pub fn hashing(
        self,
        hash: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            hashing: Some(Hashing::new(hash)),
            ..self
        }
    }

    /// The name of a bucket as packed keys have it.
    pub(crate) fn hashed<'b>(&self, bucket: &'b [u8]) -> Cow<'b, [u8]> {
        match &self.hashing {
            Some(hashing) => hashing.apply(bucket),
            None => Cow::Borrowed(bucket),
        }
    }

    /// The name of a bucket's key and, if the key is a hash for many, its field there. `None` where
    /// the limit is not known, or buckets of this quota have no open form and are packed.
    pub fn name(&self, bucket: &[u8], quota: &Quota) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        self.limits
            .get(BucketParts::of(bucket).policy_and_limit())?;
        let key = self.key(&[], bucket, quota)?;
        let key = OpenKey::read(&key);
        let field = (key.form == Form::Window).then(|| key.field.to_vec());
        Some((key.name.to_vec(), field))
    }

    /// The key of a bucket on its way to the script, unless the bucket is packed. `prefix` is for
    /// buckets of limits that are not known.
    pub(crate) fn key(&self, prefix: &[u8], bucket: &[u8], quota: &Quota) -> Option<RedisKey> {
        // No document knows blocks, and under a name without the band it would be taken for the
        // limit's own. Nor do documents store the whole that a share refers to.
        if quota.is_block() || quota.scales() {
            return None;
        }
        let limit = self.limits.get(BucketParts::of(bucket).policy_and_limit());
        let form = match quota.algorithm() {
            Algorithm::TokenBucket => match self.fields(limit) {
                TokenFields::Millis => Form::Millis,
                TokenFields::Nanos => Form::Nanos,
            },
            Algorithm::SlidingLog => Form::Log,
            Algorithm::FixedWindow(_) if window::is_whole(quota) => Form::Window,
            Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => {
                return None;
            }
        };
        let bucket = match limit {
            Some(_) => Cow::Borrowed(bucket),
            None => self.hashed(bucket),
        };
        let whose = BucketParts::of(&bucket);
        let literal = limit.map_or("", |limit| &limit.literal);
        let subject = KeySubject::of(&whose, literal);
        let band = band(limit, quota);
        let mut name = Vec::with_capacity(64);
        let mut field = Vec::new();
        match limit {
            Some(limit) => {
                for piece in &limit.template {
                    piece.push(&mut name, &whose, &subject, &band);
                }
                if let Some(number) = quota.reset_number() {
                    name.extend_from_slice(format!("~{number:08x}").as_bytes());
                }
                if form == Form::Window {
                    subject.push_key(&mut field);
                }
            }
            None => {
                name.extend_from_slice(prefix);
                name_unknown(form, (&mut name, &mut field), &whose, &band);
            }
        }
        Some(
            OpenKey {
                form,
                name: &name,
                field: &field,
            }
            .write(),
        )
    }

    /// Returns the token fields of a limit, or those of limits without an entry.
    fn fields(&self, limit: Option<&OpenLimit>) -> TokenFields {
        match limit {
            Some(limit) if limit.template.contains(&KeyPiece::Band) => TokenFields::Nanos,
            Some(_) => TokenFields::Millis,
            None => self.unknown,
        }
    }
}

/// Returns the text of a band: its label, or its number.
fn band(limit: Option<&OpenLimit>, quota: &Quota) -> String {
    let family = quota.family();
    let known = limit.and_then(|limit| limit.bands.iter().find(|(band, _)| *band == family));
    match known {
        Some((_, label)) => label.clone(),
        None => format!("{:016x}", quota.id().as_u64()),
    }
}

/// A bucket whose limit is not known is named after itself and its band.
fn name_unknown(
    form: Form,
    (name, field): (&mut Vec<u8>, &mut Vec<u8>),
    whose: &BucketParts<'_>,
    band: &str,
) {
    let start: &[u8] = match form {
        Form::Millis => b"ratelimit:",
        Form::Nanos => b"fluxgate:",
        Form::Window => b"rate_limits:",
        Form::Log | Form::Packed => b"log:",
    };
    name.extend_from_slice(start);
    if form == Form::Window {
        whose.push_limit(name);
        whose.push_subject(field);
    } else {
        whose.push(name);
    }
    name.push(b':');
    name.extend_from_slice(band.as_bytes());
}
