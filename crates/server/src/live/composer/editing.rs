//! Changes through this server: checked whole, written, and then served.

use super::Composer;
use super::refused::lost;
use crate::live::edit::{self, Edit, EditError};
use crate::live::source::{Part, WriteError};
use crate::live::state::{Kept, Which};
use crate::live::view::View;
use crate::tasks::undisturbed;
use std::sync::Arc;

impl Composer {
    /// Makes all of these changes to a source, or none: to the one that is named, or the first that can
    /// be written to. `expected` is the version of the view that they were made from.
    ///
    /// All that would be served is validated before anything is written, and served here at once.
    pub(crate) async fn edit(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: Vec<Edit>,
    ) -> Result<Arc<View>, EditError> {
        let (this, source) = (self.clone(), source.map(str::to_owned));
        let expected = expected.to_owned();
        let edited = undisturbed(async move {
            let source = source.as_deref();
            this.edit_now(source, &expected, &edits).await
        });
        // What broke off may have written.
        edited
            .await
            .unwrap_or_else(|| Err(EditError::Doubtful(lost().to_string())))
    }

    async fn edit_now(
        &self,
        source: Option<&str>,
        expected: &str,
        edits: &[Edit],
    ) -> Result<Arc<View>, EditError> {
        let mut state = self.inner.state.lock().await;
        let view = self.view().await;
        if view.version != expected {
            let now = view.version.clone();
            return Err(EditError::Stale { now });
        }
        let kept = edit::target(&state.served.order, source)?;
        let latest = edit::base(state.at(&kept), &kept)?;
        let part = edit::edited(&view, &state.served.order, (&kept, &latest), edits)?;
        let part = Arc::new(part);
        let (config, _) = self.compose(state.with_part(&kept, &part)).await?;
        let checked = self.inner.serving.could_reload(config);
        checked.map_err(|failure| EditError::Refused(failure.to_string()))?;
        let Some(writer) = kept.source.writer() else {
            return Err(EditError::Unknown(format!(
                "{} is not there",
                kept.settings.name
            )));
        };
        match writer.write(&latest.version, edits).await {
            Ok(version) => {
                let part = Part::clone(&part);
                if let Some(slot) = state.slot(&kept) {
                    slot.take(Part { version, ..part });
                }
                state.is_unsettled = true;
                kept.health.answered();
                let refused = self.settle(&mut state).await;
                let own = refused.into_iter().find(|(which, _)| is_of(which, &kept));
                match own {
                    None => Ok(self.view().await),
                    Some((_, why)) => Err(EditError::Unserved(why)),
                }
            }
            Err(WriteError::Away(why)) => Err(EditError::Away(why)),
            Err(WriteError::Doubtful(why)) => Err(EditError::Doubtful(why)),
            Err(WriteError::Conflict) => {
                drop(state);
                // Whatever comes of it is told where it belongs.
                self.refresh(&kept).await.ok();
                let now = self.view().await.version.clone();
                Err(EditError::Stale { now })
            }
        }
    }
}

fn is_of(which: &Which, kept: &Arc<Kept>) -> bool {
    matches!(which, Which::Source(it) if Arc::ptr_eq(it, kept))
}
