//! From a request to the limits it meets, and the names of their buckets.
//!
//! | module | what it is |
//! |---|---|
//! | `normalise` | one spelling for each path |
//! | `path_pattern`, `host` | the patterns that conditions use |
//! | `wildcard`, `entry` | the patterns by which conditions know descriptors |
//! | `descriptor` | all lists of entries of a policy, in which a descriptor finds one place |
//! | `trie` | all path patterns of a policy, walked at once |
//! | `values` | limits that are told apart by one value, looked up by it |
//! | `facts` | a request with one spelling for everything in it |
//! | `condition` | what a condition asks besides the path |
//! | `key` | whose bucket; with `address`, `escape` and `secret` to write it |
//! | `matcher` | the limits of a policy, prepared |
//! | `meet`, `search` | all of it, for one request |
//! | `router` | the same for the routes of a gateway, of which a request takes one |

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
