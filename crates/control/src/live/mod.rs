//! Configuration that changes while it is served: the file and the sources that it lists.
//!
//! ```text
//!   file ──┐
//!  keeper ─┤   last good of each      one configuration, validated whole
//!   http ──┼──▶ parts, in order ──▶ compose ──▶ ServerState::reload (swapped at once)
//!   redis ─┤                           │
//!   etcd ──┘                           └─ refused: the previous configuration stays, and
//!                                         log, metrics and status give the reason
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `source` | the interface of a source, and the parts that it loads |
//! | `origins` | the sources: keeper, HTTP, Redis, etcd, xDS |
//! | `config_file`, `config_source` | the files, and the input that they are |
//! | `config_files` | the file, which is the first of them, and its watcher |
//! | `file_changes` | the fingerprints of the files that were last read |
//! | `composer` | the composition of all sources, and its application |
//! | `sources` | the served and the pending part of each source |
//! | `start` | the first composition, before anything is served |
//! | `documents`, `edit` | the documents of a writable source, and edits of them |
//! | `view` | a read-only view of the served configuration |
//! | `report` | log messages |

mod composer;
pub mod config_file;
mod config_files;
pub mod config_source;
mod documents;
mod edit;
mod file_changes;
mod origins;
mod report;
mod source;
mod sources;
mod start;
mod view;

pub use composer::{Composer, ReloadError};
pub use config_files::{ConfigFiles, EVERY};
pub use edit::SourceDocument;
pub(crate) use edit::{Edit, EditError};
pub use file_changes::RetrySchedule;
pub(crate) use source::SourceNote;
pub(crate) use start::ask_once;
pub use start::{InitialConfig, begin};
pub(crate) use view::{PartView, ServedConfig};
