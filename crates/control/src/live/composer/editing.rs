//! Edits through this server: validated completely, written, and then served.

use super::Composer;
use super::reload_error::{ReloadError, lost};
use crate::live::documents::Documents;
use crate::live::edit::{self, Edit, EditError, EditedPart};
use crate::live::report;
use crate::live::source::{LoadedPart, Revision, SourceDefect, WriteError};
use crate::live::sources::{ChangedOrigin, ComposerState, SourceHandle};
use crate::live::view::ServedConfig;
use std::sync::Arc;
use tidegate_net::tasks::undisturbed;
use tokio::sync::MutexGuard;

impl Composer {
    /// Makes all of these edits to a source, or none: to the named one, or the first writable one.
    /// `expected` is the version of the view that they are based on.
    ///
    /// The complete new configuration is validated before anything is written, and is served immediately.
    pub(crate) async fn edit(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: Vec<Edit>,
    ) -> Result<Arc<ServedConfig>, EditError> {
        let (this, source) = (self.clone(), source.map(str::to_owned));
        let expected = expected.to_owned();
        let edited = undisturbed(async move {
            let source = source.as_deref();
            this.edit_now(source, &expected, &edits).await
        });
        // A task that was aborted may have written.
        edited
            .await
            .unwrap_or_else(|| Err(EditError::Doubtful(lost().to_string())))
    }

    async fn edit_now(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: &[Edit],
    ) -> Result<Arc<ServedConfig>, EditError> {
        let mut state = self.inner.state.lock().await;
        let view = self.view().await;
        if view.version != expected {
            let now = view.version.clone();
            return Err(EditError::Stale { now });
        }
        let kept = edit::target(&state.served.order, source)?;
        let latest = edit::base(state.at(&kept), &kept)?;
        let edited = edit::edited(&view, &state.served.order, (&kept, &latest), edits)?;
        let part = match edited {
            EditedPart::Sound(part) => Arc::new(part),
            EditedPart::Less { after, why } => {
                let written = write(&kept, &latest.version, edits).await;
                return Err(self
                    .still_invalid(state, &kept, written, (after, why))
                    .await);
            }
        };
        match self.compose(state.with_part(&kept, &part)).await {
            Ok(config) => {
                let checked = self.inner.serving.validate_reload(config);
                checked.map_err(|failure| EditError::Refused(failure.to_string()))?;
            }
            // It cannot be served, but neither can the current version, which has more errors.
            Err(refused) if self.is_less(&refused, &state, (&kept, &latest)).await => {}
            Err(refused) => return Err(refused.into()),
        }
        match write(&kept, &latest.version, edits).await {
            Ok(version) => {
                let part = LoadedPart::clone(&part);
                if let Some(slot) = state.slot(&kept) {
                    slot.take(LoadedPart { version, ..part });
                }
                state.is_unsettled = true;
                kept.health.answered();
                let refused = self.apply_pending(&mut state).await;
                let own = refused.into_iter().find(|(which, _)| is_of(which, &kept));
                match own {
                    None => Ok(self.view().await),
                    Some((_, why)) => Err(EditError::Unserved(why)),
                }
            }
            Err(EditError::Stale { .. }) => Err(self.outrun(state, &kept).await),
            Err(error) => Err(error),
        }
    }

    /// Records an edit that fixed some errors of a source but not all, if it was written. Returns the
    /// error for the client: the previous configuration stays active.
    async fn still_invalid(
        &self,
        mut state: MutexGuard<'_, ComposerState>,
        kept: &Arc<SourceHandle>,
        written: Result<Revision, EditError>,
        (after, why): (Documents, String),
    ) -> EditError {
        let version = match written {
            Ok(version) => version,
            Err(EditError::Stale { .. }) => return self.outrun(state, kept).await,
            Err(error) => return error,
        };
        if let Some(slot) = state.slot(kept) {
            slot.epoch = slot.epoch.wrapping_add(1);
            slot.wrong = Some(SourceDefect {
                version,
                why: why.clone(),
                documents: Some(after),
            });
        }
        let refused = ReloadError::Unread(why);
        kept.health.answered();
        kept.health.still_refused(report::in_short(&refused));
        EditError::Unserved(refused)
    }

    /// Returns true if the edit leaves fewer errors than the source has now, so that errors can be fixed
    /// one by one.
    async fn is_less(
        &self,
        refused: &ReloadError,
        state: &ComposerState,
        (kept, latest): (&Arc<SourceHandle>, &Arc<LoadedPart>),
    ) -> bool {
        let ReloadError::Invalid(errors) = refused else {
            return false;
        };
        let documents = latest.documents.as_ref();
        if documents.is_some_and(|documents| documents.wrong().is_some()) {
            return true;
        }
        let now = self.compose(state.with_part(kept, latest)).await;
        matches!(now, Err(ReloadError::Invalid(earlier)) if errors.count() < earlier.count())
    }

    /// Loads a source after a concurrent write to it, so that the client can retry.
    async fn outrun(
        &self,
        state: MutexGuard<'_, ComposerState>,
        kept: &Arc<SourceHandle>,
    ) -> EditError {
        drop(state);
        if let Err(trouble) = self.refresh(kept).await {
            return EditError::Away(trouble.0);
        }
        let now = self.view().await.version.clone();
        EditError::Stale { now }
    }
}

/// Writes to a source that is at `expected`, and returns the new version.
async fn write(
    kept: &SourceHandle,
    expected: &Revision,
    edits: &[Edit],
) -> Result<Revision, EditError> {
    let Some(writer) = kept.source.writer() else {
        let name = &kept.settings.name;
        return Err(EditError::Unknown(format!("{name} does not exist")));
    };
    writer
        .write(expected, edits)
        .await
        .map_err(|error| match error {
            WriteError::Away(why) => EditError::Away(why),
            WriteError::Doubtful(why) => EditError::Doubtful(why),
            // The current version is not known here.
            WriteError::Conflict => EditError::Stale { now: String::new() },
        })
}

fn is_of(which: &ChangedOrigin, kept: &Arc<SourceHandle>) -> bool {
    matches!(which, ChangedOrigin::Source(it) if Arc::ptr_eq(it, kept))
}
