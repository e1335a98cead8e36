//! Configuration that changes while it is served: the file and the sources that it lists.
//!
//! ```text
//!   file ──┐
//!  keeper ─┤   last good of each      one configuration, validated whole
//!   http ──┼──▶ parts, in order ──▶ compose ──▶ Serving::reload (swapped at once)
//!   redis ─┤                           │
//!   etcd ──┘                           └─ refused: what was served is served on, and
//!                                         log, metrics and status say why
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `source` | the interface of a source, and the parts that it loads |
//! | `origins` | the sources: keeper, HTTP, Redis, etcd |
//! | `ground` | the file, which is the first of them, and its watcher |
//! | `looked` | the fingerprints of the files that were last read |
//! | `composer` | the composition of all sources, and its application |
//! | `state` | the served and the pending part of each source |
//! | `begin` | the first composition, before anything is served |
//! | `documents`, `edit` | the documents of a writable source, and edits of them |
//! | `health` | the health of each source |
//! | `view` | a read-only view of the served configuration |
//! | `report` | log messages |

mod begin;
mod composer;
mod documents;
mod edit;
mod ground;
mod health;
mod looked;
mod origins;
mod report;
mod source;
mod state;
mod view;

pub(crate) use begin::{InitialConfig, ask_once, begin};
pub(crate) use composer::{Composer, ReloadError};
pub(crate) use edit::{Edit, EditError, Raw};
pub(crate) use ground::{ConfigFiles, EVERY};
pub(crate) use health::{Board, FetchOutcome};
pub(crate) use looked::Again;
pub(crate) use source::SourceNote;
pub(crate) use view::{PartView, ServedConfig, SourceView};
