//! Tests of matching, file by file.

mod address;
mod described;
mod descriptor;
mod fixtures;
mod host;
mod key;
mod key_properties;
mod meet;
mod normalise;
mod path_pattern;
mod router;
mod secret;
mod trie;
mod values;
mod vectors;
