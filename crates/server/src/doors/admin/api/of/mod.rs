//! Those who answer calls.
//!
//! | module | what it is |
//! |---|---|
//! | `documents` | policies, guards and routes: looked at, made, changed, removed |
//! | `editing` | how any of that is changed: of the version that was seen, whole, written down |
//! | `limits` | the limits of policies |
//! | `modes` | turning limits, guards and routes off and on |
//! | `usage` | who uses what |
//! | `assign` | which policy a route has |
//! | `members` | who is on the list of a guard |
//! | `bans` | who is kept out, by any of them |
//! | `buckets` | looking into buckets, and resetting them |
//! | `plans` | what the subjects of plans have |
//! | `status` | how this server is, and what it serves |

pub(super) mod assign;
pub(super) mod bans;
pub(super) mod buckets;
pub(super) mod documents;
mod editing;
pub(super) mod limits;
pub(super) mod members;
pub(super) mod modes;
pub(super) mod plans;
pub(super) mod status;
mod usage;
