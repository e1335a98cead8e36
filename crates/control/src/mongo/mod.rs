//! Clients of `MongoDB`.

#[cfg(feature = "mongodb")]
mod client;
#[cfg(test)]
#[cfg(feature = "mongodb")]
pub(crate) mod double;
#[cfg(test)]
#[cfg(feature = "mongodb")]
pub(crate) mod real;

#[cfg(feature = "mongodb")]
pub(crate) use client::{connect, shown};

/// The error for a setting that needs the feature `mongodb`.
pub const WITHOUT_MONGODB: &str = "this program was built without MongoDB (`--no-default-features`); \
     use a default build, or add `--features mongodb`, or serve the same from a file or over HTTP";
