//! Serving what was taken in: all of it, or as much of it as is sound.

use super::Composer;
use super::refused::{ReloadError, lost};
use crate::live::health::SourceHealth;
use crate::live::report::{self, Oddities};
use crate::live::state::{ChangedOrigin, ComposerState, ConfigCandidate, Sound, SourceHandle};
use crate::tasks::blocking;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::Config;
use tidegate_policy::source::LeftOut;
use tokio::time::{Instant, timeout_at};

/// How long lists of guards are read ahead, in all, while a change waits to be served, and whoever else
/// has one waits for that. Lists that take longer are there a moment later.
const AHEAD: Duration = Duration::from_secs(5);

/// How it goes with what is settled.
#[derive(Debug)]
struct SettleProgress {
    /// Until when lists are read ahead.
    until: Instant,
    /// Whether something was wrong where a file could not be read.
    is_lacking: bool,
    /// What is left out of what was served last.
    left_out: Option<Vec<(Arc<SourceHandle>, LeftOut)>>,
}

impl Composer {
    /// Serves what waits: all of it, or as much of it as is sound. Tells what is not.
    pub(super) async fn settle(
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
        // Nothing may look otherwise once the file can be read.
        let is_lacking = course.is_lacking && !refusals.is_empty();
        self.inner.looked.note_composing(is_lacking);
        for (which, refused) in &refusals {
            self.refuse(state, which, refused);
        }
        state.is_unsettled = false;
        refusals
    }

    /// The same, for whoever does not read the file: with a source, a file may be served that waited for
    /// it, and lists others than the one before.
    pub(super) async fn settle_beside(
        &self,
        state: &mut ComposerState,
    ) -> Vec<(ChangedOrigin, ReloadError)> {
        // Put aside: it is large.
        let refusals = Box::pin(self.settle(state)).await;
        // Whoever reads the file counts on those that it found, and lets go of them afterwards.
        if let Ok(_reading) = self.inner.reading.try_lock() {
            self.prune(state, false);
        }
        refusals
    }

    /// Serves what waits, one after the other, as far as each is sound beside what is served.
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
        // With the file, sources may have come that have more to say.
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

    /// Notes that all that waits is served now: the file first, for the sources that come with it.
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
            let version = kept.health.standing().version.unwrap_or_default();
            report::applied(&kept.settings.name, &version);
        }
    }

    /// Tells that something cannot be served, once for as long as it says the same.
    fn refuse(&self, state: &mut ComposerState, which: &ChangedOrigin, refused: &ReloadError) {
        if state.tell(which) {
            self.complain(which, refused);
        } else {
            self.health(which).still_refused(report::in_short(refused));
        }
    }

    pub(super) fn complain(&self, which: &ChangedOrigin, refused: &ReloadError) {
        let health = self.health(which);
        self.inner.serving.reload_refused();
        // Metrics and status first: they hold by the time that the log has the line.
        health.refused(report::in_short(refused));
        report::refused(health.name(), &self.inner.ground.name(), refused);
    }

    pub(super) fn health<'a>(&'a self, which: &'a ChangedOrigin) -> &'a SourceHealth {
        match which {
            ChangedOrigin::File => &self.inner.file,
            ChangedOrigin::Source(kept) => &kept.health,
        }
    }

    /// Serves `whole`, or says why not.
    async fn attempt(
        &self,
        whole: ConfigCandidate,
        course: &mut SettleProgress,
    ) -> Result<(), ReloadError> {
        let (composed, is_lacking) = self.composed(whole).await;
        course.is_lacking |= is_lacking;
        let (
            Sound {
                config,
                view,
                left_out,
            },
            oddities,
        ) = composed?;
        let ahead = self.inner.serving.read_ahead(&config);
        // What was not read in time is read by whoever keeps it.
        timeout_at(course.until, ahead).await.ok();
        // What decides and what is shown are two things, and cannot be replaced in one step. Whoever
        // looks meanwhile waits until both are: either order alone would show what is not served yet, or
        // not show what somebody has been refused by.
        let mut shown = self.inner.view.write().await;
        let served = self.inner.serving.try_reload(config);
        served.map_err(|failure| ReloadError::Unservable(failure.to_string()))?;
        *shown = Arc::new(view);
        self.announce(&shown.version);
        drop(shown);
        // What is only tried, and not served, is nobody's concern.
        let mut told = self.inner.told.lock();
        oddities.tell_since(&told);
        *told = oddities;
        course.left_out = Some(left_out);
        Ok(())
    }

    /// What `whole` means, or what is wrong with it.
    pub(super) async fn compose(&self, whole: ConfigCandidate) -> Result<Config, ReloadError> {
        let (composed, _) = self.composed(whole).await;
        composed.map(|(sound, _)| sound.config)
    }

    /// The same, with what there is to tell once it is served, and whether it is wrong where a file could
    /// not be read.
    async fn composed(
        &self,
        whole: ConfigCandidate,
    ) -> (Result<(Sound, Oddities), ReloadError>, bool) {
        if let Some(kept) = whole.missing() {
            let (name, standing) = (&kept.settings.name, kept.health.standing());
            let why = standing.trouble.unwrap_or_default();
            let message = format!("nothing is known of the source `{name}`: {why}");
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
        // Whatever came of it: a file that is not there may be tomorrow.
        self.inner.looked.add(files);
        let is_lacking = is_lacking && composed.is_err();
        (composed.map_err(ReloadError::Invalid), is_lacking)
    }

    /// Lets everybody see how it stands with these sources: with one by each name. A file that waits may
    /// list one otherwise that is served as it was listed before, and then it is that one which counts.
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
    use crate::live::begin::begin;
    use crate::live::ground::ConfigFiles;
    use crate::serving::Serving;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn what_was_only_tried_counted_as_told_as_if_it_were_served() {
        let (config, begun) = begin(ConfigFiles::default()).await.unwrap();
        let serving = Serving::start(config).await.unwrap();
        let composer = Composer::new(begun, serving);
        let told = || composer.inner.told.lock().variables.clone();
        composer.inner.told.lock().variables = vec!["OF_WHAT_IS_SERVED".to_owned()];
        let before = told();
        let mut state = composer.inner.state.lock().await;
        composer.compose(state.as_served()).await.unwrap();
        assert_eq!(told(), before);
        composer.settle(&mut state).await;
        assert_ne!(told(), before);
    }

    #[tokio::test]
    async fn whoever_looked_while_a_change_took_effect_was_shown_what_was_served_before() {
        let (config, begun) = begin(ConfigFiles::default()).await.unwrap();
        let serving = Serving::start(config).await.unwrap();
        let composer = Composer::new(begun, serving);
        let before = composer.view().await.version.clone();
        // As while it is served, and not shown yet.
        let changing = composer.inner.view.write().await;
        assert!(composer.view().now_or_never().is_none());
        drop(changing);
        assert_eq!(composer.view().await.version, before);
    }
}
