//! Requests and responses as JSON, for `POST /json`: in protobuf's JSON mapping.
//!
//! | module | what it is |
//! |---|---|
//! | `schema` | the fields of both messages |
//! | `read` | from JSON to the message |
//! | `write` | from the message to JSON |
//!
//! JSON is converted to the message that a gRPC call would have sent, and the response message back to JSON.
//! So both frontends mean the same, and there is one way to decide.

mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use crate::wire::json::JsonResult;
use serde_json::Value;

/// Returns the JSON Schema of a request.
pub(crate) fn request_schema() -> Value {
    schema::REQUEST.request_schema()
}

/// Returns the JSON Schema of a response.
pub(crate) fn response_schema() -> Value {
    schema::RESPONSE.response_schema()
}

/// Converts JSON to a `RateLimitRequest`.
///
/// # Errors
///
/// A syntax error, an unknown field, or a value of the wrong type. The fault names the field.
pub fn to_request(text: &[u8]) -> JsonResult<Vec<u8>> {
    read::message(text, &schema::REQUEST)
}

/// Converts a `RateLimitResponse`, written by Tidegate, to JSON.
pub fn of_response(message: &[u8]) -> Vec<u8> {
    write::message(message, &schema::RESPONSE)
}
