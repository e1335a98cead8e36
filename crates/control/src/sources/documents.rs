//! Plans, groups and subjects in a document store, each by its name: `plan/ID`, `group/ID` and
//! `subject/ID`.

use super::entries::PlanEntries;
use crate::docstore::{self, DocumentStore, Revision};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate::LoadedPlans;
use tidegate_net::tasks::blocking;
use tidegate_policy::documents as settings;

/// The maximum number of open stores: as many as a configuration may name.
const SHELVES_MAX: usize = 64;

/// The document stores that configurations so far have named, each with its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct DocumentStores(Arc<Mutex<Vec<OpenStore>>>);

/// A document store, and the settings that it was opened with.
#[derive(Debug)]
struct OpenStore {
    settings: settings::DocumentStoreSettings,
    time_max: Duration,
    shelf: Arc<dyn DocumentStore>,
}

impl DocumentStores {
    /// Returns the document store that `settings` name. All callers share it.
    pub(super) fn get(
        &self,
        settings: &settings::DocumentStoreSettings,
        time_max: Duration,
    ) -> Result<Arc<dyn DocumentStore>, String> {
        let mut kept = self.0.lock();
        let is_it = |it: &&OpenStore| it.settings == *settings && it.time_max == time_max;
        if let Some(known) = kept.iter().find(is_it) {
            return Ok(Arc::clone(&known.shelf));
        }
        let opened: Arc<dyn DocumentStore> = docstore::open(settings, time_max)?.into();
        if kept.len() >= SHELVES_MAX {
            // The oldest one; a caller that still uses it opens it again.
            kept.remove(0);
        }
        kept.push(OpenStore {
            settings: settings.clone(),
            time_max,
            shelf: Arc::clone(&opened),
        });
        Ok(opened)
    }
}

/// Loads the plans of a store; `tag` is the last version.
pub(super) async fn load(
    shelf: &dyn DocumentStore,
    tag: Option<String>,
    hides_subjects: bool,
) -> Result<LoadedPlans, String> {
    let seen = tag.map(Revision);
    let shelved = shelf.read(seen.as_ref()).await.map_err(|it| it.0)?;
    let Some(shelved) = shelved else {
        return Ok(LoadedPlans::Unchanged);
    };
    let tag = Some(shelved.version.0.clone());
    let document = blocking(move || PlanEntries::new(shelved).document(hides_subjects)).await;
    Ok(LoadedPlans::Changed {
        document: document.ok_or("it did not finish")?,
        tag,
    })
}
