//! The Redis that buckets live in: how calls to its nodes go, and what they say of themselves.
//!
//! | module | what it is |
//! |---|---|
//! | `nodes` | the nodes, and what each said last when asked how it is |
//! | `figures` | the figures that are taken from that |
//! | `page` | how it is shown in metrics |
//! | `info` | what `INFO` says |

mod figures;
pub(crate) mod info;
mod nodes;
mod page;

pub(crate) use nodes::{NodeFigures, Nodes};
pub(super) use page::RedisCollector;
