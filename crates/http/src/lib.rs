//! Who asks over HTTP, and what they are told: the same at every HTTP door.
//!
//! | module | what it is |
//! |---|---|
//! | [`question`] | from the head of a request to what limits look at |
//! | [`answer`] | from a decision to headers, status and body |
//! | [`grpc`] | the same for callers over gRPC |
//! | [`text`] | values as JSON, markup and dates spell them |

pub mod answer;
mod clock;
pub mod grpc;
pub mod question;
pub mod text;

pub use clock::unix_seconds;
