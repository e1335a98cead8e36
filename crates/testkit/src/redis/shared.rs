//! Servers and a runtime that all tests of one program share.

use super::{Cluster, Server, ServerProgram};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::runtime::Runtime;

/// Returns the runtime of the whole program: connections of one test must not end with another.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

/// Returns a prefix that no other store of this program has.
pub fn own_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("tg{}:", NEXT.fetch_add(1, Relaxed))
}

/// Returns one server for all tests of the program.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// Returns one server of another make for all tests of the program, if it is installed.
pub fn flavour(flavour: ServerProgram) -> Option<&'static Server> {
    static REDIS_8: OnceLock<Option<Server>> = OnceLock::new();
    static VALKEY_9: OnceLock<Option<Server>> = OnceLock::new();
    let cell = match flavour {
        ServerProgram::Redis8 => &REDIS_8,
        _ => &VALKEY_9,
    };
    let start = || {
        let available = flavour.available();
        available.then(|| Server::builder().flavour(flavour).start())
    };
    cell.get_or_init(start).as_ref()
}

/// Returns one Cluster of three masters for all tests of the program.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(3, 0))
}
