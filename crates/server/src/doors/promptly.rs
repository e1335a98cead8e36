//! Runs what nearly always ends at once, without carrying around what it would need in order to wait.

use futures_util::FutureExt;
use std::future::Future;

/// What comes of what `begin` begins.
///
/// What may have to wait holds questions, decisions and a call to the store: kilobytes, which would be
/// part of every answer on its way, and be moved with it several times. So what does not wait
/// (`waits` says so) runs on the stack and is done; what does is put aside, once.
pub(super) async fn promptly<F: Future>(waits: bool, begin: impl Fn() -> F) -> F::Output {
    if !waits && let Some(done) = begin().now_or_never() {
        return done;
    }
    Box::pin(begin()).await
}
