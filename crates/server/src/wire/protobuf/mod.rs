//! Protobuf as far as the gRPC door speaks it: fields of messages, read in place and written once.
//!
//! | module | what it is |
//! |---|---|
//! | `read` | the fields of a message, borrowed |
//! | `write` | fields, appended to a buffer |
//!
//! There is no schema here: who reads a message knows its fields by number.

pub(crate) mod read;
pub(crate) mod write;

/// How a field is written: the lowest three bits of its tag.
pub(crate) mod kind {
    pub(crate) const VARINT: u64 = 0;
    pub(crate) const FIXED_64: u64 = 1;
    pub(crate) const BYTES: u64 = 2;
    pub(crate) const GROUP: u64 = 3;
    pub(crate) const GROUP_END: u64 = 4;
    pub(crate) const FIXED_32: u64 = 5;
}
