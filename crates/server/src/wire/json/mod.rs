//! JSON, read where it lies and written where it goes.
//!
//! Our own, for two reasons. Errors name the field, what was expected there and what was found,
//! which people need and a general deserialiser does not know. And a line of a trace is read in a
//! fraction of the time that a decision on it takes; see `tidegate simulate`.

mod number;
mod reader;
mod string;

pub use reader::{DEPTH_MAX, JsonReader};
pub use tidegate_http::text::write_json_string as write_string;

use super::fault::WireFault;

/// What reading JSON comes to.
pub type JsonResult<T> = Result<T, Box<WireFault>>;
