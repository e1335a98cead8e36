//! The file: checked each second, and read again when it has changed.

use super::Composer;
use super::reload_error::{ReloadError, lost};
use crate::live::config_source::{ConfigTexts, InputError};
use crate::live::report;
use crate::live::sources::{ChangedOrigin, ComposerState, SourceHandle, SourceState};
use crate::live::start::{PATIENCE, first, kept};
use futures_util::future::join_all;
use std::sync::Arc;
use tidegate_config::source::PolicySource;
use tidegate_net::tasks::{blocking, undisturbed};

/// The reason to read the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadReason {
    /// The file, or a file that it names, has changed.
    Changed,
    /// One of them could not be read the last time, which has been logged.
    Again,
    /// A reload was requested.
    Asked,
}

impl Composer {
    /// Watches the files, and reads them when they have changed, or could not be read.
    pub(super) async fn watch_file(&self) {
        let looked = &self.inner.looked;
        loop {
            let now = self.inner.ground.changed(looked).await;
            let is_same = now == looked.last();
            looked.see(now);
            let why = if is_same {
                ReadReason::Again
            } else {
                ReadReason::Changed
            };
            self.read_file(why).await;
        }
    }

    /// Reads the file, and serves it if it, or a file that it names, has changed. Logs its errors.
    async fn read_file(&self, why: ReadReason) {
        let this = self.clone();
        let read = undisturbed(async move { this.read_file_now(why).await });
        // No caller waits for the result.
        drop(read.await);
    }

    pub(super) async fn read_file_now(&self, why: ReadReason) -> Result<(), ReloadError> {
        let _reading = self.inner.reading.lock().await;
        let looked = &self.inner.looked;
        let texts = match self.inner.ground.read().await {
            Ok(texts) => Arc::new(texts),
            Err(unusable) => {
                looked.note_reading(matches!(unusable, InputError::Unread(_)));
                return Err(self.refuse_file(unusable.into(), why));
            }
        };
        self.inner.file.answered();
        let always = why == ReadReason::Asked || looked.is_due();
        if !always && self.inner.state.lock().await.has_file(&texts) {
            self.inner.file.unchanged();
            if why == ReadReason::Again {
                self.settle_again().await;
            }
            return Ok(());
        }
        let (listed, new) = match self.listed(&texts).await {
            Ok(listed) => listed,
            Err(refused) => return Err(self.refuse_file(refused, why)),
        };
        report::notes(texts.notes());
        let mut state = self.inner.state.lock().await;
        // The new sources are kept up to date from now on, even if the file is rejected.
        let is_new = !new.is_empty();
        state.pool.extend(new);
        state.take_file(texts, &listed);
        let refused = self.apply(&mut state).await;
        self.prune(&mut state, is_new);
        match refused.into_iter().next() {
            None => Ok(()),
            Some((_, refused)) => Err(refused),
        }
    }

    /// Returns the sources that a file lists, and the new ones among them. Those are loaded for the first
    /// time, all concurrently, while everything else continues.
    async fn listed(
        &self,
        texts: &Arc<ConfigTexts>,
    ) -> Result<(Vec<PolicySource>, Vec<SourceState>), ReloadError> {
        let (ground, texts) = (self.inner.ground.clone(), Arc::clone(texts));
        let read = blocking(move || {
            let environment = ground.environment();
            let listed = texts.sources(&environment);
            let is_lacking = listed.is_err() && environment.is_lacking();
            (listed, environment.files(), is_lacking)
        });
        let (listed, files, is_lacking) = read.await.ok_or_else(lost)?;
        self.inner.looked.begin(files);
        self.inner.looked.note_reading(is_lacking);
        let listed = listed.map_err(ReloadError::Invalid)?;
        // No other task adds sources.
        let known = self.inner.state.lock().await.known();
        let mut new = Vec::new();
        for settings in &listed {
            if known.iter().any(|(kept, _)| kept.settings == *settings) {
                continue;
            }
            let opened = kept(settings.clone());
            let name = &settings.name;
            let opened = opened.map_err(|why| ReloadError::Unservable(format!("{name}: {why}")))?;
            // A source with only another password is the same place, so its earlier part still applies.
            let is_it = |(kept, _): &&(Arc<SourceHandle>, _)| kept.settings.is_same_place(settings);
            let before = known.iter().find(is_it).and_then(|(_, part)| part.clone());
            new.push(first(Arc::new(opened), before, PATIENCE));
        }
        Ok((listed, join_all(new).await))
    }

    /// Removes sources that no file names any more. Notifies the task that runs the sources of that, and
    /// of new ones.
    pub(super) fn prune(&self, state: &mut ComposerState, is_new: bool) {
        let before = state.pool.len();
        state.prune();
        if is_new || state.pool.len() != before {
            self.hang(state);
            let sources = &self.inner.sources;
            sources.send_modify(|it| *it = it.wrapping_add(1));
        }
    }

    /// Tries to serve the pending changes again. The caller holds the lock for reading the file.
    async fn settle_again(&self) {
        let mut state = self.inner.state.lock().await;
        self.apply(&mut state).await;
        self.prune(&mut state, false);
    }

    /// Rejects a file before it is taken to be served.
    fn refuse_file(&self, refused: ReloadError, why: ReadReason) -> ReloadError {
        self.inner.looked.owe();
        let trouble = self.inner.file.status().error;
        if why != ReadReason::Again || trouble != Some(report::in_short(&refused)) {
            self.log_rejection(&ChangedOrigin::File, &refused);
        }
        refused
    }
}
