//! Operating a Tidegate server: where its configuration comes from, what it serves, and the admin API.
//!
//! | module | what it is |
//! |---|---|
//! | [`live`] | configuration that changes while it is served: the file and its sources |
//! | `docstore` | texts by name, kept in Redis, etcd or MongoDB, that may be written to |
//! | [`sources`] | the sources of plans |
//! | `mongo` | clients of MongoDB, with the feature `mongodb` |
//! | [`running`] | the state that the frontends serve: decisions and routes |
//! | [`admin`] | the admin API, health and metrics |
//! | [`pending_changes`] | changes by administrators in flight |
//! | [`buckets`] | finding, inspecting and resetting a bucket |
//! | [`environment`] | the environment of a configuration |
//! | [`failure`] | failures, and their exit codes |

pub mod admin;
pub mod buckets;
mod docstore;
pub mod environment;
pub mod failure;
pub mod live;
pub mod mongo;
pub mod pending_changes;
pub mod running;
pub mod sources;
