//! The parts of a match: from a request to candidates among limits, and to the keys of their buckets.
//!
//! | module | contents |
//! |---|---|
//! | `descriptor` | a tree of all entry lists of a policy, in which a descriptor has one position |
//! | `trie` | all path patterns of a policy, matched in one walk |
//! | `values` | an index of limits that differ in one value |
//! | `facts` | a request in normalised form |
//! | `condition` | the parts of a condition besides the path |
//! | `key` | the bucket key; `address` and `secret` help to write it |
//! | `matcher` | the limits of a policy, prepared for matching |
//! | `router` | the same for a gateway's routes, of which a request takes one |

mod address;
pub(crate) mod condition;
mod descriptor;
mod facts;
mod key;
mod matcher;
mod router;
mod secret;
mod subject;
#[cfg(test)]
mod tests;
mod trie;
mod values;

pub use crate::patterns::{
    DescriptorPattern, EntryPattern, HostPattern, PathPattern, ValuePattern, Wildcard,
    is_secret_name, normalise,
};
pub use key::{KeyRules, bucket_scope};
pub use matcher::Matcher;

pub(crate) use facts::{FieldNeeds, MatchInput, Spellings};
pub(crate) use router::{Router, RouterScratch};
pub(crate) use trie::{Candidate, TrieWalk};
pub(crate) use values::ValuesScratch;
