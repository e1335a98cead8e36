//! Moving a slot from one master to another, step by step.

use super::{Cluster, Server};
use crate::redis::access::TestLogin;
use crate::redis::reply::RespReply;
use crate::redis::wait::until;

/// Milliseconds that the servers may take to move a key.
const HANDOVER_MS: &str = "5000";

/// A slot in migration: a missing key is redirected to its new node (`ASK`), a command with keys on
/// both sides has to be retried (`TRYAGAIN`).
///
/// Dropped half way, it stays half way.
#[derive(Debug)]
#[must_use = "the slot stays half way until this is finished or cancelled"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a Server,
    to: &'a Server,
}

impl<'a> Migration<'a> {
    pub(super) fn begin(cluster: &'a Cluster, slot: u16, to: &'a Server) -> Self {
        let from = cluster.owner_of(slot);
        let migration = Self {
            cluster,
            slot,
            from,
            to,
        };
        // In this order: no client may be redirected to a node that does not expect it.
        migration.set_slot(to, &["IMPORTING", &from.id()]);
        migration.set_slot(from, &["MIGRATING", &to.id()]);
        migration
    }

    /// Moves at most `max` keys, and returns how many that were.
    pub fn move_keys(&self, max: usize) -> usize {
        let mut client = self.from.client();
        let (slot, max) = (self.slot.to_string(), max.to_string());
        let keys = client.command(&["CLUSTER", "GETKEYSINSLOT", &slot, &max]);
        let keys = keys.list();
        if keys.is_empty() {
            return 0;
        }
        let port = self.to.port().to_string();
        let TestLogin { user, password } = TestLogin::admin();
        let mut command: Vec<&[u8]> = vec![b"MIGRATE", b"127.0.0.1", port.as_bytes()];
        command.extend([&b""[..], b"0", HANDOVER_MS.as_bytes()]);
        if self.cluster.options.admin().login().is_some() {
            command.extend([&b"AUTH2"[..], user.as_bytes(), password.as_bytes()]);
        }
        command.push(b"KEYS");
        command.extend(keys.iter().map(RespReply::bytes));
        // A key that expired in between answers NOKEY, which is as good.
        client.command(&command).done();
        keys.len()
    }

    /// Moves all keys that are left, and gives the slot to its new owner.
    pub fn finish(self) {
        while self.move_keys(100) > 0 {}
        let id = self.to.id();
        // The new owner first: should it die now, the old one still has the slot.
        self.set_slot(self.to, &["NODE", &id]);
        self.set_slot(self.from, &["NODE", &id]);
        for server in self.cluster.masters() {
            if server.port() != self.to.port() && server.port() != self.from.port() {
                self.set_slot(server, &["NODE", &id]);
            }
        }
        until("the slot has its new owner", || {
            self.cluster.owner_of(self.slot).port() == self.to.port()
        });
        self.cluster.await_healthy();
    }

    /// Leaves the slot to its old owner. Keys that have moved are lost to it, so move none first.
    pub fn cancel(self) {
        self.set_slot(self.from, &["STABLE"]);
        self.set_slot(self.to, &["STABLE"]);
    }

    fn set_slot(&self, server: &Server, rest: &[&str]) {
        let slot = self.slot.to_string();
        let mut command = vec!["CLUSTER", "SETSLOT", &slot];
        command.extend_from_slice(rest);
        server.command(&command).done();
    }
}
