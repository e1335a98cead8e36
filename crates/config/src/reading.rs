//! The parts of the language that translators of other formats read with, so that their messages have
//! positions and advice like those of a configuration.

pub use crate::language::reader::{AppendedText, ConfigReader, ConfigValue};
pub use crate::language::table::{FieldReader, FieldRow, FieldTable, Shape, optional, required};
pub use crate::language::words::Vocabulary;
pub use crate::sections::key::part as parse_key_part;
pub use crate::sections::plans::http_url as parse_http_url;
pub use crate::syntax::read as read_syntax;
pub use crate::tables::{BANDS_MAX, KEY_PARTS_MAX, LIMITS_MAX, POLICIES_MAX};
