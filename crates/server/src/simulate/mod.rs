//! Past traffic, decided in virtual time: the effect of limits on a trace or an access log.
//!
//! | module | what it is |
//! |---|---|
//! | [`lines`] | the lines of an input, bounded |
//! | [`formats`] | the formats of lines: traces, access logs |
//! | [`event`] | a past request |
//! | [`engine`] | the decisions, in virtual time |
//! | [`run`] | the whole run: lines in, decisions out |
//! | [`tally`] | the counts for the summary |
//! | [`progress`], `table` | output for people |

pub mod engine;
pub mod event;
pub mod formats;
pub mod lines;
pub mod progress;
pub mod run;
mod skipped;
pub(crate) mod table;
pub mod tally;
