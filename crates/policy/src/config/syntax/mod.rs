//! The text of a configuration: what it says, and where. What it means is decided elsewhere.

mod node;
mod tree;
mod yaml;

pub(super) use node::{Entry, Key, Kind, Node, Place};
pub(super) use yaml::read;
