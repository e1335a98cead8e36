//! Each topology starts, and does what a test would ask of it.

mod cluster;
mod proxy;
mod sentinel;
mod server;
mod undertaker;

use super::{Acl, Certificates, ServerOptions};

/// TLS, and users of whom the limiter may only read and write keys that begin with `rl:`.
fn guarded(options: ServerOptions) -> ServerOptions {
    options
        .tls(&Certificates::make())
        .acl(Acl::limiter("~rl:* -@all +@read +@write +cluster|slots"))
}
