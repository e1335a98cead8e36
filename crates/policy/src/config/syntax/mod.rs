//! The text of a configuration: what it says, and where. What it means is decided elsewhere.

mod anchors;
mod node;
mod tree;
mod yaml;

pub(crate) use node::{MapEntry, MapKey, NodeKind, TextSpan, YamlNode};
pub(crate) use yaml::{read, read_up_to};

#[cfg(test)]
mod tests;
