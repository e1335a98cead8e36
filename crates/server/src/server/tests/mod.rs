//! Connections as clients meet them, at a door for strangers.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | a door that does as it is told, and connections to it in memory |
//! | `aging` | the maximum age of a connection, in virtual time |
//! | `ambiguity` | what is refused unread |
//! | `floods` | too many HTTP/2 control frames |
//! | `life` | how long a connection lives, in virtual time |
//! | `multiplexed` | HTTP/2 |
//! | `turning` | upgrades, taken and declined |

mod aging;
mod ambiguity;
mod floods;
mod kit;
mod life;
mod multiplexed;
mod turning;
