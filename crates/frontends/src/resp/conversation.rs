//! One connection's commands and replies, independent of the transport.

use super::RespFrontend;
use super::batch::CommandBatch;
use super::host::{Flow, RespHost};
use super::intake::{Intake, KEPT_BYTES};
use super::metrics::RespTally;
use super::queue::CommandQueue;
use super::reply::Replies;
use super::session::RespSession;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidegate::Store;

/// The number of commands to execute before other tasks get a turn.
const COMMANDS_MAX: usize = 256;

/// The next action of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAction {
    /// All input is handled: send the replies, and read more.
    Read,
    /// There is more input to handle, but the replies have to be sent first.
    Write,
    /// There is more input to handle, after other tasks had a turn.
    Pause,
    /// Send the replies, and close.
    Close,
}

/// One connection's commands and replies.
#[derive(Debug)]
pub(super) struct RespConversation<S> {
    pub(super) intake: Intake,
    pub(super) host: RespHost<S>,
    /// Commands of a transaction that `EXEC` has started, before any further command is read. They
    /// take turns and send replies like a pipeline, so a large transaction delays no other client.
    running: CommandQueue,
    /// The maximum number of bytes of a command, and of replies that wait to be sent.
    pub(super) bytes_max: usize,
}

impl<S: Store> RespConversation<S> {
    pub(super) fn new(frontend: Arc<RespFrontend<S>>, peer: IpAddr) -> Self {
        let id = frontend.connections.fetch_add(1, Relaxed);
        let is_known = frontend.token.is_none();
        Self {
            intake: Intake::new(),
            running: CommandQueue::default(),
            bytes_max: frontend.threshold.bounds.body_bytes,
            host: RespHost {
                session: RespSession::new(id, peer.to_canonical(), is_known),
                replies: Replies::default(),
                batch: CommandBatch::default(),
                tally: RespTally::default(),
                rules: None,
                frontend,
            },
        }
    }

    /// Executes the commands that were read, as far as possible without waiting.
    pub(super) fn turn(&mut self) -> NextAction {
        let host = &mut self.host;
        for _ in 0..COMMANDS_MAX {
            if host.replies.len() >= self.bytes_max || host.batch.is_full() {
                return NextAction::Write;
            }
            let bounds = host.session.bounds(self.bytes_max);
            let flow = if let Some(command) = self.running.next() {
                host.execute_queued(command)
            } else {
                match self.intake.next(&bounds) {
                    Ok(None) => return NextAction::Read,
                    Ok(Some(command)) if command.is_empty() => Flow::GoOn,
                    Ok(Some(command)) => host.execute(command),
                    Err(fault) => {
                        host.frontend.threshold.metrics.count_bad(400);
                        host.replies.error(format!("ERR {}", fault.message()));
                        return NextAction::Close;
                    }
                }
            };
            match flow {
                Flow::GoOn => {}
                Flow::Run => {
                    let queue = host.session.transaction.take();
                    self.running = queue.map_or_else(CommandQueue::default, |queue| *queue);
                }
                Flow::Close => return NextAction::Close,
            }
        }
        NextAction::Pause
    }

    /// Notes that the replies were sent. The next batch uses the rules in force then.
    pub(super) fn sent(&mut self) {
        self.host.replies.clear(KEPT_BYTES);
        self.host.rules = None;
        self.add_up();
    }

    fn add_up(&mut self) {
        let tally = std::mem::take(&mut self.host.tally);
        self.host.frontend.metrics.add(&tally);
    }
}
