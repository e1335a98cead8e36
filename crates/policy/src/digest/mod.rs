//! Lookup of a text among millions: membership, and a number stored with it.
//!
//! | module | contents |
//! |---|---|
//! | `mark` | the digest of a text: 96 unpredictable bits |
//! | `digested` | a text of a request with its digest, computed once |
//! | `marks` | a map from digests to numbers with one memory access per lookup |
//! | `filter` | a filter for absent digests, in a twentieth of the memory |
//!
//! The cost of a lookup is not computation but memory latency: with a hundred thousand subjects the data is
//! in no cache, and every location that is read adds a wait. So texts are neither stored nor compared. The
//! table identifies a text by its digest and stores its number next to the digest.

mod digested;
mod filter;
mod mark;
mod marks;
#[cfg(test)]
mod tests;

pub use digested::DigestedText;
pub(crate) use filter::DigestFilter;
pub(crate) use mark::{TEXT_BYTES_MAX, TextDigest};
pub(crate) use marks::{DigestSlot, Marks};
