//! A JSON reader that borrows from its input, and a JSON writer.
//!
//! Tidegate has its own reader for two reasons. Errors name the field, the expected type and the type found,
//! which people need and a general deserialiser does not know. And a line of a trace is read in a fraction of
//! the time that a decision on it takes; see `tidegate simulate`.

mod number;
mod reader;
mod string;

pub use reader::{DEPTH_MAX, JsonReader};
pub use tidegate_http::text::write_json_string as write_string;

use super::fault::WireFault;

/// The result of reading JSON.
pub type JsonResult<T> = Result<T, Box<WireFault>>;
