//! The streams of an HTTP/2 connection, which run in the connection's own task.
//!
//! hyper wants to spawn each. Within one task they need no contended lock, wake no other thread, and end with
//! their connection; and a stream whose client does not read can be cut without affecting the others.

use super::idle::LOOKS;
use super::idle_clock::ResponseTurn;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hyper::rt::Executor;
use parking_lot::Mutex;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type StreamTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The executor that receives the streams that hyper begins.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamExecutor(Arc<Mutex<NewStreams>>);

/// Streams that have begun, and were not yet seen by [`Streams`]. There are a few at a time.
#[derive(Default)]
struct NewStreams {
    /// The response of the stream that is begun next.
    strand: Option<Arc<ResponseTurn>>,
    streams: Vec<Http2Stream>,
}

/// The streams of one connection.
#[derive(Debug)]
pub(super) struct Streams {
    beginner: StreamExecutor,
    running: FuturesUnordered<Http2Stream>,
}

/// One stream.
struct Http2Stream {
    /// Present until the stream ends or is cut.
    work: Option<StreamTask>,
    strand: Option<Arc<ResponseTurn>>,
    /// The number of turn changes at the last check, and the number of checks since then at which it was the
    /// client's turn.
    seen: u64,
    quiet: u32,
    /// Wakes the stream after it was cut.
    waker: Option<Waker>,
}

impl StreamExecutor {
    /// Returns the response of the next stream that is begun.
    pub(super) fn announce(&self) -> Arc<ResponseTurn> {
        let strand = Arc::<ResponseTurn>::default();
        self.0.lock().strand = Some(Arc::clone(&strand));
        strand
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, work: F) {
        let work: StreamTask = Box::pin(work);
        let mut begun = self.0.lock();
        let strand = begun.strand.take();
        begun.streams.push(Http2Stream {
            work: Some(work),
            strand,
            seen: 0,
            quiet: 0,
            waker: None,
        });
    }
}

impl Streams {
    pub(super) fn new(beginner: StreamExecutor) -> Self {
        Self {
            beginner,
            running: FuturesUnordered::new(),
        }
    }

    /// Polls all streams that can make progress, including those that have just begun.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        loop {
            self.running
                .extend(self.beginner.0.lock().streams.drain(..));
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) | Poll::Pending => {
                    if self.beginner.0.lock().streams.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    /// Cuts the streams whose client has not read for [`LOOKS`] checks.
    pub(super) fn look(&mut self) {
        for stream in &mut self.running {
            stream.look();
        }
    }
}

impl Http2Stream {
    fn look(&mut self) {
        let turns = self.strand.as_ref().map_or(0, |strand| strand.turns());
        let is_stuck = ResponseTurn::is_clients(turns) && turns == self.seen;
        self.quiet = if is_stuck {
            self.quiet.saturating_add(1)
        } else {
            0
        };
        self.seen = turns;
        if self.quiet >= LOOKS {
            self.work = None;
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Future for Http2Stream {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(());
        };
        let poll = work.as_mut().poll(context);
        if poll.is_pending() {
            let waker = context.waker();
            let is_known = self.waker.as_ref().is_some_and(|it| it.will_wake(waker));
            if !is_known {
                self.waker = Some(waker.clone());
            }
        }
        poll
    }
}

impl fmt::Debug for Http2Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("strand", &self.strand)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for NewStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewStreams")
            .field("streams", &self.streams.len())
            .finish_non_exhaustive()
    }
}
