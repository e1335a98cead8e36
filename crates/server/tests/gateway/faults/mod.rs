//! What can go wrong, and what must not follow from it.
//!
//! | module | what goes wrong |
//! |---|---|
//! | `unreachable`, `slow`, `broken` | one upstream |
//! | `reuse`, `shared` | connections that are closed while they wait, or are used by many |
//! | `connections` | more requests than an upstream may have connections |
//! | `ejection`, `dying` | one upstream of several |
//! | `uploads`, `downloads` | clients |
//! | `tunnels` | one side that finishes before the other |
//! | `refunds` | requests that reach nobody |
//! | `drain` | the gateway itself, which is told to stop |
//! | `leaks` | all of it, thousands of times |
//! | `problems` | what clients are told, word for word |

mod kit;

mod broken;
mod connections;
mod downloads;
mod drain;
mod dying;
mod ejection;
mod leaks;
mod problems;
mod refunds;
mod reuse;
mod shared;
mod slow;
mod tunnels;
mod unreachable;
mod uploads;
