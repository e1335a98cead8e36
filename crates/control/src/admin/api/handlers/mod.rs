//! The handlers of calls.
//!
//! | module | what it is |
//! |---|---|
//! | `documents` | policies, guards and routes: list, read, create, change, remove |
//! | `editing` | changes of documents: version check, validation, audit |
//! | `limits` | the limits of policies |
//! | `modes` | the modes of limits, guards and routes |
//! | `usage` | the users of documents |
//! | `assign` | the policy of a route |
//! | `members` | the members of a guard's list |
//! | `bans` | the clients that any guard bans |
//! | `buckets` | inspection and reset of buckets |
//! | `budgets` | budgets of a subject |
//! | `plans` | the plans, groups and subjects of plan sources |
//! | `status` | the status of this server, and its configuration |

pub(super) mod assign;
pub(super) mod bans;
pub(super) mod buckets;
pub(super) mod budgets;
pub(super) mod documents;
mod editing;
pub(super) mod limits;
pub(super) mod members;
pub(super) mod modes;
pub(super) mod plans;
pub(super) mod status;
mod usage;
