//! A conversation without a socket: bytes in, bytes out. For tests and for fuzzing.

use super::RespFrontend;
use super::conversation::{NextAction, RespConversation};
use crate::decider::Decider;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tidegate::{Secret, Store};
use tidegate_net::bounds::Bounds;
use tidegate_net::connection_handler::ListenerConfig;
use tidegate_net::metrics::ListenerMetrics;
use tidegate_net::phase::Phase;
use tidegate_net::token::ListenerToken;

/// A connection to a separate frontend.
#[derive(Debug)]
pub struct RespHarness<S> {
    talk: RespConversation<S>,
    is_closed: bool,
}

impl<S: Store + 'static> RespHarness<S> {
    /// Creates a connection that decides with `decider`, and requires `password`, if there is one.
    pub fn new(decider: Decider<S>, password: Option<&str>) -> Self {
        let threshold = ListenerConfig {
            name: "resp",
            bounds: Bounds::default(),
            metrics: ListenerMetrics::default(),
            closes_in: Phase::Draining,
            age: None,
        };
        let token = password.map(|it| ListenerToken::new(Secret::new(it)));
        let frontend = RespFrontend::new(threshold, decider, token);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self {
            talk: RespConversation::new(Arc::new(frontend), peer),
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
