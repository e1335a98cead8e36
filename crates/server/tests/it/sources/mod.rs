//! Policy that comes from elsewhere, and changes while it is served.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | the program with a source, and questions to it under load |
//! | `double` | a server that says what it is told to, for what is only ever a document over HTTP |
//! | `file` | the file itself, watched |
//! | `named` | files that it names, and that are read with it |
//! | `keeper` | a key of a keeper |
//! | `http` | a document at a URL |
//! | `redis` | a hash of a real Redis |
//! | `spread` | the same behind sentinels, and in a Cluster |
//! | `lives` | instances that come and go while it changes, and buckets that do not |
//! | `etcd` | keys of a real etcd |
//! | `secured` | sources over TLS, by certificates that no system knows |
//! | `several` | sources together: their order, and what one refuses to another |

mod double;
mod etcd;
mod file;
mod http;
mod keeper;
mod kit;
mod lives;
mod named;
mod redis;
mod secured;
mod several;
mod spread;
