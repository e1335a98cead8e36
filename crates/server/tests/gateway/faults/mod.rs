//! Faults, and their bounded effects.
//!
//! | module | fault |
//! |---|---|
//! | `unreachable`, `slow`, `broken` | one upstream |
//! | `reuse`, `shared` | connections that close while idle, or are shared by many |
//! | `connections` | more requests than an upstream's connection limit |
//! | `ejection`, `dying` | one upstream of several |
//! | `uploads`, `downloads` | clients |
//! | `tunnels` | one side that finishes before the other |
//! | `refunds` | requests that reach no upstream |
//! | `drain` | the gateway itself, which shuts down |
//! | `leaks` | all of it, thousands of times |
//! | `problems` | the responses to clients, word for word |

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
