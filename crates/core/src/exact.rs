//! The bound of exact arithmetic that all stores share.

/// Integers below this are exact in a double, which is all that a Redis script has. Every product
/// that an algorithm forms stays below it, in every store, so that all stores decide alike.
pub const EXACT_MAX: u64 = 1 << 53;
