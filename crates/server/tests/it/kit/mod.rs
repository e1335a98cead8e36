//! Servers on free ports, a client that can misbehave, processes.

pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod cuttable;
pub(crate) mod folder;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod running;
pub(crate) mod schemathesis;
pub(crate) mod server;
pub(crate) mod simulation;
pub(crate) mod terminal;

pub(crate) use client::{Client, Reply, get, in_time, post};
pub(crate) use cuttable::CuttableServer;
pub(crate) use proxy::ask;
pub(crate) use server::Server;

/// One limit: two at once, then one per minute.
pub(crate) const TWO_A_MINUTE: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/min burst 2 }
";

/// One limit that is never reached.
pub(crate) const PLENTY: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1000000/s }
";
