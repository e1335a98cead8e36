//! Policy that comes from elsewhere, and changes while it is served.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | the program with a source, and questions to it under load |
//! | `double` | a server that says what it is told to, for what is only ever a document over HTTP |
//! | `admin` | asking the admin API of the program |
//! | `origin` | any source, made to say one rate after the other |
//! | `file` | the file itself, watched |
//! | `named` | files that it names, and that are read with it |
//! | `keeper` | a key of a keeper |
//! | `limits` | limits of the Traefik plugin, as a keeper tells them |
//! | `http` | a document at a URL |
//! | `redis` | a hash of a real Redis |
//! | `rules` | rule sets of FluxGate, in hashes of a real Redis |
//! | `lives` | instances that come and go while it changes, and buckets that do not |
//! | `etcd` | keys of a real etcd |
//! | `members` | members of etcd that hang or hang up, and what is asked of them |
//! | `wire` | a wire to a member that notes what is asked |
//! | `bursts` | nobody gets what they have used once more by a change |
//! | `counts` | what passes follows the number that is in force |
//! | `granted` | the user that `tidegate doctor` prints suffices for all of it in Redis |
//! | `standing` | what is told of a source that is not as it should be |
//! | `read_only` | sources that are not written to through a server |
//! | `mongodb` | documents in a MongoDB, rules there, and plans, with the feature of that name |
//! | `spread` | the same behind sentinels, and in a Cluster |
//! | `secured` | sources over TLS, by certificates that no system knows |
//! | `several` | sources together: their order, and what one refuses to another |

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
