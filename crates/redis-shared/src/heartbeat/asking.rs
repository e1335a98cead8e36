//! Asking between the regular beats: all callers that wait share the next beat.
//!
//! Only the heartbeat's own task sends. So callers do not delay it, at any number and any latency of Redis, and a caller that stops waiting cancels nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::shared_state::Roll;
use tidegate_redis_client::{CallEffect, CallError, CallErrorKind};
use tokio::sync::{Notify, watch};

/// The list that a beat returned; `None` if it may not be read.
pub(super) type BeatResult = Result<Option<Roll>, CallError>;

/// The beat that ended last: its number and its result.
#[derive(Debug)]
struct LastBeat {
    nth: u64,
    heard: BeatResult,
}

/// The task's end of the channel: it reports its beats. It is dropped with the task, and then all callers
/// stop waiting.
#[derive(Debug)]
pub(super) struct BeatSpeaker {
    begun: Arc<AtomicU64>,
    ended: watch::Sender<Option<LastBeat>>,
}

/// The callers' end of the channel.
#[derive(Debug)]
pub(super) struct BeatListener {
    begun: Arc<AtomicU64>,
    ended: watch::Receiver<Option<LastBeat>>,
}

/// Both ends.
pub(super) fn channel() -> (BeatSpeaker, BeatListener) {
    let begun = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = watch::channel(None);
    let saying = BeatSpeaker {
        begun: Arc::clone(&begun),
        ended: sender,
    };
    let asking = BeatListener {
        begun,
        ended: receiver,
    };
    (saying, asking)
}

impl BeatSpeaker {
    /// Reports that a beat begins, before its content is read. Returns its number.
    pub(super) fn begins(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Reports the result of a beat.
    pub(super) fn ends(&self, nth: u64, heard: BeatResult) {
        self.ended.send_replace(Some(LastBeat { nth, heard }));
    }
}

impl BeatListener {
    /// Requests a beat, and returns the result of the first one that begins from now on.
    pub(super) async fn next(&self, bell: &Notify) -> BeatResult {
        // A beat in flight may have been sent before the present configuration.
        let begun = self.begun.load(Ordering::Relaxed);
        bell.notify_one();
        let mut ended = self.ended.clone();
        let is_later = |ended: &Option<LastBeat>| ended.as_ref().is_some_and(|it| it.nth > begun);
        let ended = ended.wait_for(is_later).await;
        let heard = ended.ok().and_then(|it| Some(it.as_ref()?.heard.clone()));
        heard.unwrap_or_else(|| {
            let why = "the heartbeat has ended";
            Err(CallError::new(
                CallEffect::NotExecuted,
                CallErrorKind::Closed,
                why,
            ))
        })
    }
}
