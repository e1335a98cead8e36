//! Config sources that change while they are in use.
//!
//! | module | contents |
//! |---|---|
//! | `kit` | the program with a source, and check requests under load |
//! | `double` | an HTTP server with configurable responses |
//! | `admin` | calls of the program's admin API |
//! | `origin` | any source, changed to one rate after the other |
//! | `file` | the watched config file |
//! | `named` | files that it names |
//! | `keeper` | a key of a keeper |
//! | `limits` | limits of the Traefik plugin from a keeper |
//! | `http` | a document at a URL |
//! | `redis` | a hash of a real Redis |
//! | `rules` | rule sets of FluxGate, in hashes of a real Redis |
//! | `lives` | instances that start and stop while policies change, and buckets that persist |
//! | `etcd` | keys of a real etcd |
//! | `members` | members of etcd that hang or disconnect, and the calls to them |
//! | `wire` | a proxy in front of a member that records calls |
//! | `bursts` | a client gets no used units back by a change |
//! | `counts` | as many requests pass as the current rate allows |
//! | `granted` | the user of `tidegate doctor` suffices for everything in Redis |
//! | `standing` | reports about a source with problems |
//! | `read_only` | sources that the admin API cannot write |
//! | `mongodb` | documents, rules and plans in MongoDB, with the feature of that name |
//! | `spread` | Redis behind sentinels, and in a Cluster |
//! | `secured` | sources over TLS, with private certificates |
//! | `several` | several sources: their order, and conflicts |

mod admin;
mod bursts;
mod counts;
mod double;
mod etcd;
mod file;
mod granted;
mod http;
mod keeper;
mod kit;
mod limits;
mod lives;
mod members;
#[cfg(feature = "mongodb")]
mod mongodb;
mod named;
mod origin;
mod read_only;
mod redis;
mod rules;
mod secured;
mod several;
mod spread;
mod standing;
mod wire;
