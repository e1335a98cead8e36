//! Configurations of other limiters, told in our own language.
//!
//! A translation is text: what `tidegate import` prints is what `tidegate serve --envoy-config`
//! serves, read by the same reader as any file. So there is one meaning, and it can be looked at.
//!
//! | module | what it is |
//! |---|---|
//! | `envoy` | the files of envoyproxy/ratelimit |
//! | `limitador` | the file of limitador |
//! | `draft`, `names` | policies and limits on their way to text, and what they are called |
//! | `yaml` | the text |
//! | `note` | what has no counterpart, and what is otherwise here |
//! | `document` | a foreign file, read with places |
//! | `merge` | a translation beside a configuration of one's own |

mod document;
mod draft;
mod envoy;
mod limitador;
mod merge;
mod names;
mod note;
mod yaml;

pub use envoy::{EnvoyOptions, envoy};
pub use limitador::limitador;
pub use merge::Named;
pub use note::Note;

use draft::PolicyDraft;

/// A file of another limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// What messages call it.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What was translated.
#[derive(Debug)]
pub struct Imported {
    /// What it was translated from, for the first line of the text.
    from: String,
    policies: Vec<PolicyDraft>,
    notes: Vec<Note>,
}

impl Imported {
    /// The configuration: complete, with the doors that the other limiter has.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.from, &self.policies, &self.notes)
    }

    /// What has no counterpart, and what is otherwise here, in the order of the files.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}
