//! The toolkit of the language: how a value is read, and which words and fields there are.
//!
//! | module | contents |
//! |---|---|
//! | `reader` | the walk over the tree, which collects the errors |
//! | `table` | the fields that a map may have |
//! | `words` | every word of the language, defined once |
//! | `names` | lists, and names that must differ |
//! | `scalar`, `host`, `foreign_path`, `local_share`, `secret_setting` | single values |

pub(crate) mod foreign_path;
pub(crate) mod host;
pub(crate) mod local_share;
pub(crate) mod names;
pub(crate) mod reader;
pub(crate) mod renamed;
pub(crate) mod scalar;
pub(crate) mod secret_setting;
pub(crate) mod table;
pub(crate) mod words;
