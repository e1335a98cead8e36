//! The subset of protobuf that the gRPC frontend and the xDS source use: fields of messages, read in place and written once.
//!
//! | module | what it is |
//! |---|---|
//! | `read` | the fields of a message, borrowed |
//! | `write` | fields, appended to a buffer |
//!
//! There is no schema here: a reader of a message knows its fields by number.

pub mod read;
pub mod write;

/// The wire types of fields: the lowest three bits of a tag.
pub mod kind {
    pub(crate) const VARINT: u64 = 0;
    pub(crate) const FIXED_64: u64 = 1;
    pub(crate) const BYTES: u64 = 2;
    pub(crate) const GROUP: u64 = 3;
    pub(crate) const GROUP_END: u64 = 4;
    pub(crate) const FIXED_32: u64 = 5;
}
