//! Finding a text among millions: whether it is known, and what goes with it.
//!
//! | module | what it is |
//! |---|---|
//! | `mark` | what a text is known by: 96 bits that nobody can foresee |
//! | `marked` | a text of a request with its mark, made once |
//! | `marks` | a number for each mark, found by one look into memory |
//! | `filter` | whether a mark may be there at all, in a twentieth of the room |
//!
//! What a request costs here is not steps but waiting: with a hundred thousand subjects nothing that is
//! kept of them stays near the processor, and every place that is looked at is one more to wait for. So
//! a text is not kept and not compared. It is known by its mark, and what goes with it stands beside the
//! mark.

mod filter;
mod mark;
mod marked;
mod marks;
#[cfg(test)]
mod tests;

pub(crate) use filter::DigestFilter;
pub(crate) use mark::{TEXT_BYTES_MAX, TextDigest};
pub use marked::DigestedText;
pub(crate) use marks::{DigestSlot, Marks};
