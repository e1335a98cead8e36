//! Connections as clients see them, on a listener for untrusted clients.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | a configurable frontend, and connections to it in memory |
//! | `aging` | the maximum age of a connection, in virtual time |
//! | `ambiguity` | requests that are rejected unread |
//! | `floods` | too many HTTP/2 control frames |
//! | `life` | the lifetime of a connection, in virtual time |
//! | `multiplexed` | HTTP/2 |
//! | `turning` | upgrades, accepted and declined |

mod aging;
mod ambiguity;
mod floods;
mod kit;
mod life;
mod multiplexed;
mod turning;
