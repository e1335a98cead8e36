//! Serves pending changes: all of them, or the valid ones.

use super::Composer;
use super::reload_error::{ReloadError, lost};
use crate::live::report::{self, Oddities};
use crate::live::sources::{
    ChangedOrigin, ComposerState, ConfigCandidate, SourceHandle, ValidConfig,
};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::compose::OmittedPolicy;
use tidegate_net::tasks::blocking;
use tidegate_telemetry::source_health::SourceHealth;
use tokio::time::{Instant, timeout_at};

/// The total time for reading lists of guards ahead, while a change waits to be served and blocks other
/// changes. Lists that take longer are read a moment later.
const AHEAD: Duration = Duration::from_secs(5);

/// The progress of settling.
#[derive(Debug)]
struct SettleProgress {
    /// The deadline for reading lists ahead.
    until: Instant,
    /// A composition was invalid, and a file could not be read.
    is_lacking: bool,
    /// The policies that are left out of the last served configuration.
    left_out: Option<Vec<(Arc<SourceHandle>, OmittedPolicy)>>,
}

impl Composer {
    /// Serves pending changes: all of them, or the valid ones. Returns the rejected ones.
    pub(super) async fn apply(
        &self,
        state: &mut ComposerState,
    ) -> Vec<(ChangedOrigin, ReloadError)> {
        let mut course = SettleProgress {
            until: Instant::now() + AHEAD,
            is_lacking: false,
            left_out: None,
        };
        let mut refusals = Vec::new();
        match self.attempt(state.latest(), &mut course).await {
            Ok(()) => self.promote_all(state).await,
            Err(refused) => match state.waiting().as_slice() {
                [only] => refusals.push((only.clone(), refused)),
                _ => refusals = self.settle_each(state, &mut course).await,
            },
        }
        if let Some(left_out) = &course.left_out {
            state.leave_out(left_out);
        }
        // Nothing may change visibly when the file can be read again.
        let is_lacking = course.is_lacking && !refusals.is_empty();
        self.inner.looked.note_composing(is_lacking);
        for (which, refused) in &refusals {
            self.refuse(state, which, refused);
        }
        state.is_unsettled = false;
        state.log_verdicts();
        refusals
    }

    /// Serves pending changes like [`apply`](Self::apply), for callers that do not read the file. A new
    /// part may let a pending file be served, which lists other sources than the one before.
    pub(super) async fn apply_pending(
        &self,
        state: &mut ComposerState,
    ) -> Vec<(ChangedOrigin, ReloadError)> {
        // Boxed: this future is large.
        let refusals = Box::pin(self.apply(state)).await;
        // A task that reads the file relies on the sources that it found, and removes unused ones
        // afterwards.
        if let Ok(_reading) = self.inner.reading.try_lock() {
            self.prune(state, false);
        }
        refusals
    }

    /// Serves pending changes one after the other, as far as each is valid together with the served
    /// configuration.
    async fn settle_each(
        &self,
        state: &mut ComposerState,
        course: &mut SettleProgress,
    ) -> Vec<(ChangedOrigin, ReloadError)> {
        let mut refusals = Vec::new();
        if state.wanted.is_some() {
            match self.attempt(state.with(&ChangedOrigin::File), course).await {
                Ok(()) => self.promote(state, &ChangedOrigin::File).await,
                Err(refused) => refusals.push((ChangedOrigin::File, refused)),
            }
        }
        // The file may have added sources with pending parts.
        for which in state.waiting() {
            if matches!(which, ChangedOrigin::File) {
                continue;
            }
            match self.attempt(state.with(&which), course).await {
                Ok(()) => self.promote(state, &which).await,
                Err(refused) => refusals.push((which, refused)),
            }
        }
        refusals
    }

    /// Records that all pending changes are served now: the file first, because of the sources that it
    /// adds.
    async fn promote_all(&self, state: &mut ComposerState) {
        if state.wanted.is_some() {
            self.promote(state, &ChangedOrigin::File).await;
        }
        for which in state.waiting() {
            self.promote(state, &which).await;
        }
    }

    async fn promote(&self, state: &mut ComposerState, which: &ChangedOrigin) {
        let promoted = state.promote(which);
        if matches!(which, ChangedOrigin::File) {
            self.inner.file.applied(&self.view().await.version);
        }
        for kept in promoted {
            let version = kept.health.status().version.unwrap_or_default();
            report::applied(&kept.settings.name, &version);
        }
    }

    /// Logs a rejection, once per version.
    fn refuse(&self, state: &mut ComposerState, which: &ChangedOrigin, refused: &ReloadError) {
        if state.tell(which) {
            self.log_rejection(which, refused);
        } else {
            self.health(which).still_refused(report::in_short(refused));
        }
    }

    pub(super) fn log_rejection(&self, which: &ChangedOrigin, refused: &ReloadError) {
        let health = self.health(which);
        self.inner.serving.reload_refused();
        // Update metrics and status first, so that they are correct by the time the log has the line.
        health.refused(report::in_short(refused));
        report::refused(health.name(), &self.inner.ground.name(), refused);
    }

    pub(super) fn health<'a>(&'a self, which: &'a ChangedOrigin) -> &'a SourceHealth {
        match which {
            ChangedOrigin::File => &self.inner.file,
            ChangedOrigin::Source(kept) => &kept.health,
        }
    }

    /// Serves `whole`, or returns why that fails.
    async fn attempt(
        &self,
        whole: ConfigCandidate,
        course: &mut SettleProgress,
    ) -> Result<(), ReloadError> {
        let (composed, is_lacking) = self.composed(whole).await;
        course.is_lacking |= is_lacking;
        let (
            ValidConfig {
                config,
                view,
                left_out,
            },
            oddities,
        ) = composed?;
        let ahead = self.inner.serving.preload_lists(&config);
        // Lists that were not read in time are read by their own tasks.
        timeout_at(course.until, ahead).await.ok();
        // The rules and the view cannot be replaced atomically. Readers of the view wait until both are
        // replaced: either order alone would show a configuration that is not served yet, or hide one by
        // which a request was already refused.
        let mut shown = self.inner.view.write().await;
        let served = self.inner.serving.try_reload(config);
        served.map_err(|failure| ReloadError::Unservable(failure.to_string()))?;
        *shown = Arc::new(view);
        self.announce(&shown.version);
        drop(shown);
        // Warnings about a configuration that is only tried, and not served, are not logged.
        let mut logged = self.inner.told.lock();
        oddities.log_changes_since(&logged);
        *logged = oddities;
        course.left_out = Some(left_out);
        Ok(())
    }

    /// Composes `whole`, or returns its errors.
    pub(super) async fn compose(&self, whole: ConfigCandidate) -> Result<Config, ReloadError> {
        let (composed, _) = self.composed(whole).await;
        composed.map(|(sound, _)| sound.config)
    }

    /// Composes `whole`. Also returns the warnings to log once it is served, and whether it is invalid
    /// while a file could not be read.
    async fn composed(
        &self,
        whole: ConfigCandidate,
    ) -> (Result<(ValidConfig, Oddities), ReloadError>, bool) {
        if let Some(kept) = whole.missing() {
            let (name, standing) = (&kept.settings.name, kept.health.status());
            let why = standing.error.unwrap_or_default();
            let message = format!("the source `{name}` is unavailable: {why}");
            return (Err(ReloadError::Unread(message)), false);
        }
        let ground = self.inner.ground.clone();
        let composed = blocking(move || {
            let environment = ground.environment();
            let sound = whole.compose(&environment);
            let sound = sound.map(|sound| {
                let oddities = Oddities::of(&sound.config, &environment);
                (sound, oddities)
            });
            (sound, environment.files(), environment.is_lacking())
        });
        let Some((composed, files, is_lacking)) = composed.await else {
            return (Err(lost()), false);
        };
        // Regardless of the result: a missing file may exist later.
        self.inner.looked.add(files);
        let is_lacking = is_lacking && composed.is_err();
        (composed.map_err(ReloadError::Invalid), is_lacking)
    }

    /// Publishes the health of the sources, one for each name. A pending file may list a served source
    /// with other settings; then the served one counts.
    pub(super) fn hang(&self, state: &ComposerState) {
        let served = state.served.order.iter().cloned();
        let mut shown: Vec<Arc<SourceHealth>> = vec![Arc::clone(&self.inner.file)];
        for kept in served.chain(state.kept()) {
            if shown.iter().all(|it| it.name() != kept.settings.name) {
                shown.push(Arc::clone(&kept.health));
            }
        }
        self.inner.board.hang(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::Composer;
    use crate::live::config_files::ConfigFiles;
    use crate::live::start::begin;
    use crate::running::ServerState;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_config_that_was_only_tried_counted_as_reported() {
        let (config, begun) = begin(ConfigFiles::default()).await.unwrap();
        let serving = ServerState::start(config).await.unwrap();
        let composer = Composer::new(begun, serving);
        let logged = || composer.inner.told.lock().variables.clone();
        composer.inner.told.lock().variables = vec!["OF_WHAT_IS_SERVED".to_owned()];
        let before = logged();
        let mut state = composer.inner.state.lock().await;
        composer.compose(state.as_served()).await.unwrap();
        assert_eq!(logged(), before);
        composer.apply(&mut state).await;
        assert_ne!(logged(), before);
    }

    #[tokio::test]
    async fn a_reader_during_a_change_was_shown_the_previous_config() {
        let (config, begun) = begin(ConfigFiles::default()).await.unwrap();
        let serving = ServerState::start(config).await.unwrap();
        let composer = Composer::new(begun, serving);
        let before = composer.view().await.version.clone();
        // The state while a configuration is served, and not shown yet.
        let changing = composer.inner.view.write().await;
        assert!(composer.view().now_or_never().is_none());
        drop(changing);
        assert_eq!(composer.view().await.version, before);
    }
}
