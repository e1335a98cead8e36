//! Names of a limit's keys in the open layout: text with placeholders.
//!
//! | placeholder | value |
//! |---|---|
//! | `{policy}`, `{limit}` | their names |
//! | `{band}` | the band's label; `default` where the limit has one band without a label |
//! | `{subject}` | labels and values, `ip:192.0.2.1`, as everywhere in Tidegate |
//! | `{key}` | the values alone, joined by `:` |
//! | `{ip}`, `{user}`, `{header:NAME}`, … | the value of one part of the key |
//!
//! `{{` and `}}` stand for braces, which make a hash tag in a Cluster.

use crate::band::Band;
use crate::key_part::{KeyPart, part_label};
use std::fmt;

/// The value of `{band}` where a limit has one band without a label.
const ONLY_BAND: &str = "default";

/// A validated name pattern for the keys of a limit: text with placeholders.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<TemplatePiece>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// Literal text.
    Text(String),
    /// The name of the policy.
    Policy,
    /// The name of the limit.
    Limit,
    /// The band.
    Band,
    /// The subject: labels and values.
    Subject,
    /// The values of the subject, joined by `:`.
    Key,
    /// The value of one part of the subject.
    Part {
        /// The part of the key.
        of: KeyPart,
        /// The label before its value in a subject.
        label: String,
    },
}

/// The values that a template inserts.
#[derive(Clone, Copy, Debug)]
pub struct KeyOf<'a> {
    /// The name of the policy.
    pub policy: &'a str,
    /// The name of the limit.
    pub limit: &'a str,
    /// The subject, as in [`MetLimits::subject`](crate::MetLimits::subject).
    pub subject: &'a str,
    /// The band's name, from [`band_name`].
    pub band: &'a str,
}

// === impl TemplatePiece ===

impl TemplatePiece {
    /// Returns the piece for one part of the subject.
    pub fn part(of: KeyPart) -> Self {
        let label = part_label(&of);
        Self::Part { of, label }
    }
}

// === impl Template ===

impl Template {
    /// Creates a template. `text` is the template as written, and `pieces` are what it means.
    pub fn new(text: String, pieces: Vec<TemplatePiece>) -> Self {
        Self { text, pieces }
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its pieces in order.
    pub fn pieces(&self) -> &[TemplatePiece] {
        &self.pieces
    }

    /// Returns the name of a key.
    pub fn render(&self, of: &KeyOf<'_>) -> String {
        let mut name = String::new();
        self.render_into(of, &mut name);
        name
    }

    /// Appends the name of a key to `name`.
    pub fn render_into(&self, of: &KeyOf<'_>, name: &mut String) {
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => name.push_str(text),
                TemplatePiece::Policy => name.push_str(of.policy),
                TemplatePiece::Limit => name.push_str(of.limit),
                TemplatePiece::Band => name.push_str(of.band),
                TemplatePiece::Subject => name.push_str(of.subject),
                TemplatePiece::Key => push_key(name, of.subject),
                TemplatePiece::Part { label, .. } => push_part(name, of.subject, label),
            }
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Returns the value of `{band}`: the label, or `default`. In the open layout, each of several bands has a
/// label.
pub fn band_name(band: &Band) -> &str {
    band.label.as_deref().unwrap_or(ONLY_BAND)
}

/// Appends the values of `subject`, joined by `:`, as in `{key}`: `192.0.2.1` for `ip:192.0.2.1`. This is the
/// field of a fixed window in its hash.
///
/// ```
/// let mut key = String::new();
/// tidegate_policy::template::push_key(&mut key, "route:orders,user~ip:192.0.2.1");
/// assert_eq!(key, "orders:~ip:192.0.2.1");
/// ```
pub fn push_key(text: &mut String, subject: &str) {
    // A comma within a value is escaped.
    for (i, part) in subject.split(',').enumerate() {
        if i > 0 {
            text.push(':');
        }
        push_value(text, value_of(part));
    }
}

fn push_part(text: &mut String, subject: &str, label: &str) {
    let found = subject.split(',').find_map(|part| {
        let rest = part.strip_prefix(label)?;
        rest.starts_with([':', '~']).then(|| value_of(part))
    });
    if let Some(value) = found {
        push_value(text, value);
    }
}

/// The text after the label: the value itself, or the replacement for an absent one.
#[derive(Clone, Copy)]
enum ValueOf<'a> {
    Itself(&'a str),
    StandIn(&'a str),
}

fn value_of(part: &str) -> ValueOf<'_> {
    match part
        .find([':', '~'])
        .and_then(|at| part.split_at_checked(at))
    {
        Some((_, stand_in)) if stand_in.starts_with('~') => ValueOf::StandIn(stand_in),
        Some((_, value)) => ValueOf::Itself(value.strip_prefix(':').unwrap_or(value)),
        // A global bucket has a label and no value.
        None => ValueOf::Itself(part),
    }
}

fn push_value(text: &mut String, value: ValueOf<'_>) {
    match value {
        ValueOf::StandIn(stand_in) => text.push_str(stand_in),
        // Escape it: no client may pose as one without an identity.
        ValueOf::Itself(value) => match value.strip_prefix('~') {
            Some(rest) => {
                text.push_str("%7E");
                text.push_str(rest);
            }
            None => text.push_str(value),
        },
    }
}
