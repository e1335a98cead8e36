//! Policy that comes from elsewhere, and changes while it is served.
//!
//! | module | what it is |
//! |---|---|
//! | `kit` | the program with a source, and questions to it under load |
//! | `double` | a server that says what it is told to, for what is only ever a document over HTTP |
//! | `admin` | asking the admin API of the program |
//! | `file` | the file itself, watched |
//! | `keeper` | a key of a keeper |
//! | `http` | a document at a URL |
//! | `redis` | a hash of a real Redis |
//! | `lives` | instances that come and go while it changes, and buckets that do not |
//! | `etcd` | keys of a real etcd |
//! | `standing` | what is told of a source that is not as it should be |
//! | `several` | sources together: their order, and what one refuses to another |

mod admin;
mod double;
mod etcd;
mod file;
mod http;
mod keeper;
mod kit;
mod lives;
mod redis;
mod several;
mod standing;
