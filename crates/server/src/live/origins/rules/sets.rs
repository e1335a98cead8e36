//! What was last understood of each rule set.

use super::SETS_MAX;
use crate::live::source::{Loaded, LoadedPart, Revision, SourceDefect, SourceNote};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::slice;
use tidegate_policy::ConfigErrors;
use tidegate_policy::import::Imported;
use tracing::error;

/// A rule set as it is now: its id, and what it says, or why that is not known.
pub(super) type Now<T> = (String, Result<T, String>);

/// How rule sets become policies; the text is what messages call them all.
pub(super) type Translate<T> = fn(&str, &[T]) -> Result<Imported, ConfigErrors>;

/// What was last understood of each rule set, by its id.
#[derive(Debug)]
pub(super) struct Sets<T> {
    /// In the order in which they were first seen: where there are too many, the latest is left out.
    good: Mutex<Vec<(String, T)>>,
    /// What was noted of them last, so that nobody hears the same with every change.
    noted: Mutex<Vec<SourceNote>>,
    /// Why each that is wrong is, as it was logged.
    logged: Mutex<BTreeMap<String, String>>,
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
    /// What all rule sets of `source` say together. One that is not understood says what it said before,
    /// or nothing if it never said anything; the log has everything that is wrong with it, once. Beyond
    /// [`SETS_MAX`], those that came last are left out.
    ///
    /// Takes as long as reading them does, and never waits.
    pub(super) fn load(
        &self,
        source: &str,
        now: Vec<Now<T>>,
        version: Revision,
        translate: Translate<T>,
    ) -> Loaded {
        let before = self.good.lock().clone();
        let places: BTreeMap<&str, usize> = (0..)
            .zip(&before)
            .map(|(at, (id, _))| (id.as_str(), at))
            .collect();
        let place = |id: &str| places.get(id).copied();
        let mut now = now;
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
        if good.is_empty() && !before.is_empty() {
            // Others in place of those that were, and none of them understood.
            let why = in_short(&flaws).unwrap_or_else(|| "all rule sets are gone".to_owned());
            return Loaded::Wrong(SourceDefect::new(version, why));
        }
        let sets: Vec<T> = good.iter().map(|(_, set)| set.clone()).collect();
        *self.good.lock() = good;
        let mut loaded = part(source, &sets, version, translate);
        if let Loaded::Part(part) = &mut loaded {
            self.leave_out_known(&mut part.notes);
            part.flaw = in_short(&flaws);
        }
        loaded
    }

    /// Whether there are any rule sets. That all of them are gone at once is the work of nobody who
    /// knows what they are for, such as a Redis that began anew.
    pub(super) fn is_known(&self) -> bool {
        !self.good.lock().is_empty()
    }

    /// Leaves out what was noted before.
    fn leave_out_known(&self, notes: &mut Vec<SourceNote>) {
        let before = std::mem::replace(&mut *self.noted.lock(), notes.clone());
        notes.retain(|note| !before.contains(note));
    }
}

fn part<T>(source: &str, sets: &[T], version: Revision, translate: Translate<T>) -> Loaded {
    let (text, notes) = match (sets, translate(source, sets)) {
        // To translate nothing makes a policy that limits nothing, which nobody has asked for.
        ([], _) => (String::new(), Vec::new()),
        (_, Ok(imported)) => (imported.to_part(), SourceNote::of(&imported)),
        (_, Err(errors)) => {
            let why = errors.to_string();
            return Loaded::Wrong(SourceDefect::new(version, why));
        }
    };
    Loaded::Part(LoadedPart {
        text,
        version,
        is_translated: true,
        is_separable: true,
        notes,
        flaw: None,
        documents: None,
    })
}

/// The first of what is wrong, and how much more there is.
fn in_short(flaws: &[String]) -> Option<String> {
    let (first, more) = flaws.split_first()?;
    Some(match more.len() {
        0 => first.clone(),
        more => format!("{first} (and {more} more rule sets)"),
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn tell(source: &str, rule_set: &str, why: &str, is_served: bool) {
    error!(source, rule_set, "{}", why.trim_end());
    let then = if is_served {
        "what it said before is served on"
    } else {
        "nothing of it is served until it is put right"
    };
    error!(source, rule_set, "the rule set was refused: {then}");
}
