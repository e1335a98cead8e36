//! Each topology starts, and supports what tests need.

mod cluster;
mod proxy;
mod reaper;
mod sentinel;
mod server;

use super::{Acl, Certificates, ServerOptions};

/// TLS, and users of whom the limiter may only read and write keys that begin with `rl:`.
fn guarded(options: ServerOptions) -> ServerOptions {
    options
        .tls(&Certificates::make())
        .acl(Acl::limiter("~rl:* -@all +@read +@write +cluster|slots"))
}
