//! A conversation without a socket: bytes in, bytes out. For tests and for fuzzing.

use super::RespDoor;
use super::conversation::{NextAction, RespConversation};
use crate::bounds::Bounds;
use crate::decider::Decider;
use crate::server::phase::Phase;
use crate::server::reception::DoorConfig;
use crate::server::token::DoorToken;
use crate::telemetry::metrics::DoorMetrics;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate::{Secret, Store};

/// A connection to a separate frontend.
#[derive(Debug)]
pub struct Laboratory<S> {
    talk: RespConversation<S>,
    is_closed: bool,
}

impl<S: Store + 'static> Laboratory<S> {
    /// Creates a connection that decides with `decider`, and requires `password`, if there is one.
    pub fn new(decider: Decider<S>, password: Option<&str>) -> Self {
        let threshold = DoorConfig {
            name: "resp",
            bounds: Bounds::default(),
            metrics: DoorMetrics::default(),
            closes_in: Phase::Draining,
            age: None,
        };
        let token = password.map(|it| DoorToken::new(Secret::new(it)));
        let door = RespDoor::new(threshold, decider, token);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self {
            talk: RespConversation::new(Arc::new(door), peer),
            is_closed: false,
        }
    }

    /// Reads `bytes`, and appends the replies to `replies`. Works only with a store that decides
    /// immediately and limits that never queue: a command that would have to wait gets no reply.
    pub fn feed(&mut self, bytes: &[u8], replies: &mut Vec<u8>) {
        if self.is_closed {
            return;
        }
        let mut rest = bytes;
        loop {
            // Like a socket, reads no more at once than there is room for.
            let room = self.talk.intake.room(self.talk.bytes_max);
            let free = room.capacity().saturating_sub(room.len());
            let (now, later) = rest.split_at(free.min(rest.len()));
            room.extend_from_slice(now);
            rest = later;
            loop {
                let turn = self.talk.turn();
                replies.extend_from_slice(self.talk.host.replies.as_bytes());
                self.talk.sent();
                match turn {
                    NextAction::Read => break,
                    NextAction::Write | NextAction::Pause => {}
                    NextAction::Close => {
                        self.is_closed = true;
                        return;
                    }
                }
            }
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Returns true if the connection has been closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }
}
