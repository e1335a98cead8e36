//! Plans, groups and subjects on a shelf, each by its name: `plan/ID`, `group/ID` and `subject/ID`.

use crate::shelf::{self, Shelf, Shelved, Version};
use crate::tasks::blocking;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate::LoadedPlans;
use tidegate::plan::{Document, Level};
use tidegate_policy::source as settings;

/// The most shelves that are kept at hand: as many as a configuration may name.
const SHELVES_MAX: usize = 64;

/// The shelves that configurations so far have named, each with its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelves(Arc<Mutex<Vec<Kept>>>);

/// A shelf, and what it was opened by.
#[derive(Debug)]
struct Kept {
    settings: settings::Shelf,
    time_max: Duration,
    shelf: Arc<dyn Shelf>,
}

impl Shelves {
    /// The shelf that `settings` name: the same for all who ask.
    pub(super) fn get(
        &self,
        settings: &settings::Shelf,
        time_max: Duration,
    ) -> Result<Arc<dyn Shelf>, String> {
        let mut kept = self.0.lock();
        let is_it = |it: &&Kept| it.settings == *settings && it.time_max == time_max;
        if let Some(known) = kept.iter().find(is_it) {
            return Ok(Arc::clone(&known.shelf));
        }
        let opened: Arc<dyn Shelf> = shelf::open(settings, time_max)?.into();
        if kept.len() >= SHELVES_MAX {
            // The one that has been named for longest; whoever still uses it opens it again.
            kept.remove(0);
        }
        kept.push(Kept {
            settings: settings.clone(),
            time_max,
            shelf: Arc::clone(&opened),
        });
        Ok(opened)
    }
}

/// What a shelf says now; `tag` is the version that it was at.
pub(super) async fn load(
    shelf: &dyn Shelf,
    tag: Option<String>,
    hides_subjects: bool,
) -> Result<LoadedPlans, String> {
    let seen = tag.map(Version);
    let shelved = shelf.read(seen.as_ref()).await.map_err(|it| it.0)?;
    let Some(shelved) = shelved else {
        return Ok(LoadedPlans::Unchanged);
    };
    let tag = Some(shelved.version.0.clone());
    let document = blocking(move || document(&shelved, hides_subjects)).await;
    Ok(LoadedPlans::Changed {
        document: document.ok_or("it came to no end")?,
        tag,
    })
}

/// All that is on a shelf as one document. What is wrong with single entries is told by its table.
pub(crate) fn document(shelved: &Shelved, hides_subjects: bool) -> Document {
    let mut document = Document::default();
    if hides_subjects {
        document = document.hiding_subjects();
    }
    for (key, text) in &shelved.texts {
        match named(key) {
            Some((level, id)) => document.put(level, id, text),
            None => {
                // What follows may be a secret in a place where nobody expects it.
                let word = key.split('/').next().unwrap_or_default();
                let word = crate::wire::fault::quote(word);
                document.refuse(format!(
                    "there is something under {word}; expected `plan/ID`, `group/ID` or `subject/ID`"
                ));
            }
        }
    }
    document
}

/// What a key names, such as `subject/ann`.
pub(crate) fn named(key: &str) -> Option<(Level, &str)> {
    let (word, id) = key.split_once('/')?;
    let level = Level::ALL.into_iter().find(|it| it.noun() == word)?;
    Some((level, id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::plan::Unset;

    fn shelved(texts: &[(&str, &str)]) -> Shelved {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        Shelved {
            version: Version("7".to_owned()),
            texts: texts.iter().map(own).collect(),
        }
    }

    #[test]
    fn plans_groups_and_subjects_come_together_from_their_keys() {
        let there = shelved(&[
            ("plan/pro", "100/min"),
            ("group/acme", r#"{"plan": "pro"}"#),
            ("subject/a/b", r#"{"group": "acme", "N": 50}"#),
        ]);
        let table = document(&there, false).table(Unset::Refuse).unwrap();
        assert_eq!((table.subjects(), table.groups()), (1, 1));
        assert_eq!(table.get("a/b").unwrap().group, Some("acme"));
        assert_eq!(table.rates()[0].to_string(), "50/min");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_and_no_secret() {
        let there = shelved(&[
            ("plan/pro", "many"),
            ("subject/s3cr3t", "{"),
            ("tokens/s3cr3t", "1/s"),
        ]);
        let wrong = document(&there, true).table(Unset::Refuse).unwrap_err();
        let wrong = wrong.to_string();
        for expected in ["plan `pro`", "subject number 1", "something under `tokens`"] {
            assert!(wrong.contains(expected), "{expected}: {wrong}");
        }
        assert!(!wrong.contains("s3cr3t"), "{wrong}");
    }
}
