//! The syntax of a configuration: its values and their positions. Other modules interpret them.

mod anchors;
mod node;
mod tree;
mod yaml;

pub(crate) use node::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
pub(crate) use yaml::{read, read_up_to};

#[cfg(test)]
mod tests;
