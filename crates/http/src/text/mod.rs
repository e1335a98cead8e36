//! Values as the formats of bodies and headers spell them.
//!
//! | module | what it is |
//! |---|---|
//! | `json` | strings of JSON |
//! | `markup` | text in HTML and XML |
//! | `instant` | instants, as RFC 3339 writes them |

mod instant;
mod json;
mod markup;

pub use instant::write_instant;
pub use json::{write_json, write_json_string};
pub use markup::{write_markup, write_plain};
