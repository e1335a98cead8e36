//! The past, decided in virtual time: what would these limits have done to this traffic?
//!
//! | module | what it is |
//! |---|---|
//! | [`lines`] | the lines of an input, bounded |
//! | [`formats`] | what the lines look like: traces, access logs |
//! | [`when`] | the instants in them |
//! | [`event`] | a request of the past |
//! | [`engine`] | decides events, by a clock that they set |
//! | [`run`] | all of it: lines in, decisions out |
//! | [`tally`] | what came of it, for the summary |
//! | [`progress`], `table` | shown to people |

pub mod engine;
pub mod event;
pub mod formats;
pub mod lines;
pub mod progress;
pub mod run;
mod skipped;
pub(crate) mod table;
pub mod tally;
pub mod when;
