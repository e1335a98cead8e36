//! The syntax of a configuration: its values and their positions. Other modules interpret them.

mod anchors;
mod edit;
mod tree;
mod yaml;

pub(crate) use edit::{at, spell_out};
pub(crate) use tidegate_policy::text::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
pub use yaml::read;
pub(crate) use yaml::read_up_to;

#[cfg(test)]
mod tests;
