//! The server from its start to its end: opening the listeners, running the background work, draining.
//!
//! | module | what it is |
//! |---|---|
//! | `run` | opening the listeners, and draining |
//! | `renewal` | TLS files that are replaced |
//! | `background` | background work while the listeners are open |

mod background;
mod renewal;
mod run;

pub use run::{ServeEnd, run};
