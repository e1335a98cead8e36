//! Patterns for the facts of a request, and the normalised forms that they are compared in.
//!
//! | module | contents |
//! |---|---|
//! | `normalise` | the normalised form of paths |
//! | `path_pattern`, `host` | the patterns for paths and hosts |
//! | `wildcard`, `entry` | the patterns for descriptors |
//! | `escape` | the escaping of special characters |
//! | `secret_name` | the names that suggest a secret |

mod entry;
pub(crate) mod escape;
mod host;
mod normalise;
mod path_pattern;
mod secret_name;
mod wildcard;

pub use entry::{DescriptorPattern, EntryPattern, ValuePattern};
pub use host::HostPattern;
pub use normalise::normalise;
pub use path_pattern::PathPattern;
pub use secret_name::is_secret_name;
pub use wildcard::Wildcard;

pub(crate) use host::canonical_host;
pub(crate) use path_pattern::{PathExtent, Segment};
