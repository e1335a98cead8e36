//! Asking between the beats that come by themselves: all who wait share the next one.
//!
//! Only the heartbeat's own task sends, so that nobody who asks stands in its way, however many they are
//! and however long Redis takes; and whoever gives up waiting ends nothing.

use crate::error::{CallEffect, CallError, CallErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::shared_state::Roll;
use tokio::sync::{Notify, watch};

/// What a beat heard; nothing where that may not be read.
pub(super) type BeatResult = Result<Option<Roll>, CallError>;

/// The beat that ended last: which it was, and what it heard.
#[derive(Debug)]
struct LastBeat {
    nth: u64,
    heard: BeatResult,
}

/// Where the task says how its beats go. It goes with the task, and then nobody waits any longer.
#[derive(Debug)]
pub(super) struct BeatSpeaker {
    begun: Arc<AtomicU64>,
    ended: watch::Sender<Option<LastBeat>>,
}

/// Where others hear of it.
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
    /// Says that a beat begins, before anything is put into it, and which it is.
    pub(super) fn begins(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Says what it heard.
    pub(super) fn ends(&self, nth: u64, heard: BeatResult) {
        self.ended.send_replace(Some(LastBeat { nth, heard }));
    }
}

impl BeatListener {
    /// What the first beat hears that begins from now on, which is rung for.
    pub(super) async fn next(&self, bell: &Notify) -> BeatResult {
        // One that is under way may not say any more what we serve now.
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
