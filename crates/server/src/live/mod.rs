//! Policy that changes while it is served: the file and the sources that it lists.
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
//! | `source` | what a source is, and what it says |
//! | `origins` | the sources: keeper, HTTP, Redis, etcd |
//! | `ground` | the file, which is the first of them, and how it is watched |
//! | `looked` | how it looked when it was last read, and the files that it names |
//! | `composer` | keeps all of it, and serves what is composed of it |
//! | `state` | what each says, what of it is served, and what waits to be |
//! | `begin` | the first composition, before anything is served |
//! | `documents`, `edit` | what a source holds that can be written to, and changes to it |
//! | `health` | how it stands with each source |
//! | `view` | what is served, for those who look |
//! | `report` | what the log hears |

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
