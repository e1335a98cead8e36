//! Requests and responses as JSON, for `POST /json`: as protobuf's own JSON has them.
//!
//! | module | what it is |
//! |---|---|
//! | `schema` | the fields of both messages |
//! | `read` | from JSON to the message |
//! | `write` | from the message to JSON |
//!
//! JSON is turned into the message that a gRPC call would have brought, and the message that would
//! have gone back into JSON: so both doors mean the same, and there is one way to decide.

mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use crate::wire::json::JsonResult;

/// The `RateLimitRequest` that `text` is.
pub fn to_request(text: &[u8]) -> JsonResult<Vec<u8>> {
    read::message(text, &schema::REQUEST)
}

/// A `RateLimitResponse`, which we have written, as JSON.
pub fn of_response(message: &[u8]) -> Vec<u8> {
    write::message(message, &schema::RESPONSE)
}
