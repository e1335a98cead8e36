//! From a request to the limits that apply, and the keys of their buckets.
//!
//! | module | contents |
//! |---|---|
//! | `normalise` | the normalised form of paths |
//! | `path_pattern`, `host` | the patterns for paths and hosts in conditions |
//! | `wildcard`, `entry` | the patterns for descriptors in conditions |
//! | `descriptor` | a tree of all entry lists of a policy, in which a descriptor has one position |
//! | `trie` | all path patterns of a policy, matched in one walk |
//! | `values` | an index of limits that differ in one value |
//! | `facts` | a request in normalised form |
//! | `condition` | the parts of a condition besides the path |
//! | `key` | the bucket key; `address`, `escape` and `secret` help to write it |
//! | `matcher` | the limits of a policy, prepared for matching |
//! | `meet`, `search` | the matching of one request |
//! | `router` | the same for a gateway's routes, of which a request takes one |

mod address;
mod condition;
mod descriptor;
mod entry;
mod escape;
mod facts;
mod host;
mod key;
mod matcher;
mod meet;
mod normalise;
mod path_pattern;
mod router;
mod search;
mod secret;
mod subject;
#[cfg(test)]
mod tests;
mod trie;
mod values;
mod wildcard;

pub use entry::{DescriptorPattern, EntryPattern, ValuePattern};
pub use host::HostPattern;
pub use key::{KeyRules, bucket_scope};
pub use matcher::Matcher;
pub use meet::{Met, MetLimits, Scratch, UnmetLimit};
pub use normalise::normalise;
pub use path_pattern::PathPattern;
pub use wildcard::Wildcard;

pub(crate) use escape::unhex;
pub(crate) use facts::{MatchInput, Reads, Spellings};
pub(crate) use host::canonical_host;
pub(crate) use key::part_label;
pub(crate) use router::{Router, RouterScratch};
pub(crate) use secret::is_secret_name;
