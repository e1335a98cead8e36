//! The Redis that holds the buckets: statistics of calls to its nodes, and figures that they report.
//!
//! | module | what it is |
//! |---|---|
//! | `nodes` | the nodes, and the last report of each |
//! | `figures` | the figures that are taken from a report |
//! | `page` | encoding as metrics |
//! | `info` | the reply to `INFO` |

mod figures;
pub mod info;
mod nodes;
mod page;

pub use nodes::{NodeFigures, NodeWord, Nodes};
pub(crate) use page::RedisCollector;
