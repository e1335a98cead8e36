//! Servers on ports that the system chooses, a client that can misbehave, processes.

pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod cuttable;
pub(crate) mod folder;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod running;
pub(crate) mod server;
pub(crate) mod simulation;

pub(crate) use client::{Client, Reply, get, post};
pub(crate) use cuttable::Cuttable;
pub(crate) use proxy::ask;
pub(crate) use server::Server;

/// One limit: two at once, then one a minute.
pub(crate) const TWO_A_MINUTE: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/min burst 2 }
";

/// One limit that nobody reaches.
pub(crate) const PLENTY: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1000000/s }
";
