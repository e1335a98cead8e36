//! The last valid version of each rule set.

use super::SETS_MAX;
use crate::live::source::{LoadResult, LoadedPart, Revision, SourceDefect, SourceNote};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::slice;
use tidegate_config::ConfigErrors;
use tidegate_import::ImportedConfig;
use tidegate_policy::text::counted;
use tracing::error;

/// A rule set as read: its id, and its content, or the reason why that is not known.
pub(super) type RuleSetResult<T> = (String, Result<T, String>);

/// Translates rule sets to policies. The text is the name of the source, for messages.
pub(super) type SetTranslator<T> = fn(&str, &[T]) -> Result<ImportedConfig, ConfigErrors>;

/// The last valid version of each rule set, by its id.
#[derive(Debug)]
pub(super) struct Sets<T> {
    /// In the order in which they were first seen: if there are too many, the latest are left out.
    good: Mutex<Vec<(String, T)>>,
    /// The last notes, so that the same notes are not logged with every change.
    noted: Mutex<Vec<SourceNote>>,
    /// The logged error of each invalid rule set.
    logged: Mutex<BTreeMap<String, String>>,
}

/// The rule sets of a source after each was validated.
struct CheckedSets<T> {
    /// Valid ones, and the last valid versions of others, by id.
    good: Vec<(String, T)>,
    /// The first line of each error.
    flaws: Vec<String>,
}

impl<T> Default for Sets<T> {
    fn default() -> Self {
        Self {
            good: Mutex::default(),
            noted: Mutex::default(),
            logged: Mutex::default(),
        }
    }
}

impl<T: Clone> Sets<T> {
    /// Combines all rule sets of `source`. An invalid one keeps its last valid version, or is left out if
    /// it has none; its errors are logged once. Beyond [`SETS_MAX`], the latest ones are left out.
    ///
    /// Parses everything, which takes time, but never waits.
    pub(super) fn load(
        &self,
        source: &str,
        now: Vec<RuleSetResult<T>>,
        version: Revision,
        translate: SetTranslator<T>,
    ) -> LoadResult {
        let before = self.good.lock().clone();
        let CheckedSets { good, flaws } = self.check(source, now, &before, translate);
        if good.is_empty() && !before.is_empty() {
            // All rule sets were replaced, and none of the new ones is valid.
            let why = in_short(&flaws).unwrap_or_else(|| "all rule sets are missing".to_owned());
            return LoadResult::Wrong(SourceDefect::new(version, why));
        }
        let sets: Vec<T> = good.iter().map(|(_, set)| set.clone()).collect();
        *self.good.lock() = good;
        let mut loaded = part(source, &sets, version, translate);
        if let LoadResult::Part(part) = &mut loaded {
            self.remove_logged(&mut part.notes);
            part.flaw = in_short(&flaws);
        }
        loaded
    }

    /// Validates each rule set on its own, in the order in which they were first seen, and replaces an
    /// invalid one by its version of `before`. Logs errors that were not logged yet.
    fn check(
        &self,
        source: &str,
        mut now: Vec<RuleSetResult<T>>,
        before: &[(String, T)],
        translate: SetTranslator<T>,
    ) -> CheckedSets<T> {
        let places: BTreeMap<&str, usize> = (0..)
            .zip(before)
            .map(|(at, (id, _))| (id.as_str(), at))
            .collect();
        let place = |id: &str| places.get(id).copied();
        now.sort_by_cached_key(|(id, _)| (place(id).unwrap_or(usize::MAX), id.clone()));
        let count = now.len();
        let mut good: Vec<(String, T)> = Vec::new();
        let mut flaws = Vec::new();
        let mut wrong = BTreeMap::new();
        for (id, said) in now {
            let understood = if good.len() == SETS_MAX {
                Err(format!(
                    "there are {count} rule sets; at most {SETS_MAX} are supported"
                ))
            } else {
                said.and_then(|set| match translate(source, slice::from_ref(&set)) {
                    Ok(_) => Ok(set),
                    Err(errors) => Err(errors.to_string()),
                })
            };
            let set = match understood {
                Ok(set) => Some(set),
                Err(why) => {
                    let known = place(&id).and_then(|at| before.get(at));
                    let set = known.map(|(_, set)| set.clone());
                    if self.logged.lock().get(&id) != Some(&why) {
                        tell(source, &id, &why, set.is_some());
                    }
                    flaws.push(format!("rule set `{id}`: {}", first_line(&why)));
                    wrong.insert(id.clone(), why);
                    set
                }
            };
            if let Some(set) = set {
                good.push((id, set));
            }
        }
        *self.logged.lock() = wrong;
        CheckedSets { good, flaws }
    }

    /// Returns true if there are any rule sets. If all of them disappear at once, that is unintended: a
    /// Redis that restarted empty, for example.
    pub(super) fn is_known(&self) -> bool {
        !self.good.lock().is_empty()
    }

    /// Removes notes that were logged before.
    fn remove_logged(&self, notes: &mut Vec<SourceNote>) {
        let before = std::mem::replace(&mut *self.noted.lock(), notes.clone());
        notes.retain(|note| !before.contains(note));
    }
}

fn part<T>(source: &str, sets: &[T], version: Revision, translate: SetTranslator<T>) -> LoadResult {
    let (text, notes) = match (sets, translate(source, sets)) {
        // Translating nothing would make an unwanted policy that limits nothing.
        ([], _) => (String::new(), Vec::new()),
        (_, Ok(imported)) => (imported.to_part(), SourceNote::of(&imported)),
        (_, Err(errors)) => {
            let why = errors.to_string();
            return LoadResult::Wrong(SourceDefect::new(version, why));
        }
    };
    LoadResult::Part(LoadedPart {
        text,
        version,
        is_translated: true,
        is_separable: true,
        notes,
        flaw: None,
        documents: None,
    })
}

/// Returns the first error, and the number of further ones.
fn in_short(flaws: &[String]) -> Option<String> {
    let (first, more) = flaws.split_first()?;
    Some(match more.len() {
        0 => first.clone(),
        more => {
            let more = counted(more, "more rule set", "more rule sets");
            format!("{first} (and {more})")
        }
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn tell(source: &str, rule_set: &str, why: &str, is_served: bool) {
    error!(
        event = "rule_set_error",
        source,
        rule_set,
        "{}",
        why.trim_end()
    );
    let then = if is_served {
        "keeping its last version"
    } else {
        "it has no effect until it is fixed"
    };
    error!(
        event = "rule_set_rejected",
        source, rule_set, "rule set rejected; {then}"
    );
}
