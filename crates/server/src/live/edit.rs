//! Changes to what a source says, asked for by somebody through this server.

use super::composer::ReloadError;
use super::documents::Documents;
use super::source::LoadedPart;
use super::state::{SourceHandle, SourceState};
use super::view::ServedConfig;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tidegate_policy::ConfigErrors;
use tidegate_policy::source::DocumentKind;

/// One change: this document from now on, or none of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) kind: DocumentKind,
    pub(crate) name: String,
    /// As it stands in the list, in JSON: `{"name": "api", "limits": […]}`. None removes it.
    pub(crate) document: Option<String>,
    /// What its source had in that place, [as it was seen](Raw::text). None makes a new one.
    pub(crate) over: Option<String>,
}

/// A document as its source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// In JSON, secrets and all; none where the source has it no more.
    pub(crate) text: Option<String>,
    /// Why that is not what is served, in words for people, where it is not.
    pub(crate) waits: Option<String>,
}

/// Why nothing was changed, or not as it was meant.
#[derive(Debug)]
pub(crate) enum EditError {
    /// What was to be changed stands where nothing can be written. These can be written to; none,
    /// where no source can.
    ReadOnly { writable: Vec<String> },
    /// Somebody else was quicker: this is the version now.
    Stale { now: String },
    /// It would not be sound: everything that is wrong with it.
    Invalid(ConfigErrors),
    /// It would be sound, and yet cannot be served by what runs.
    Refused(String),
    /// There is no such document, or no such source.
    Unknown(String),
    /// It is there already, but not served; or its source has something that is no document, and takes
    /// no other change until that is put right.
    InTheWay(String),
    /// It cannot go: these need it.
    Used { by: Vec<String> },
    /// The source cannot be reached, or does not take it: nothing was written.
    Away(String),
    /// Nobody knows whether it was written.
    Doubtful(String),
    /// It was written, and is not served.
    Unserved(ReloadError),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { writable } if writable.is_empty() => {
                f.write_str("no source of policy can be written to")
            }
            Self::ReadOnly { writable } => write!(
                f,
                "it stands where it cannot be changed from here; what can be written to: {}",
                writable.join(", ")
            ),
            Self::Stale { now } => write!(f, "somebody else changed it: it is at {now} now"),
            Self::Invalid(errors) => errors.fmt(f),
            Self::Refused(why)
            | Self::Away(why)
            | Self::Doubtful(why)
            | Self::Unknown(why)
            | Self::InTheWay(why) => f.write_str(why),
            Self::Unserved(why) => write!(f, "it was written, and is not served: {why}"),
            Self::Used { by } => write!(f, "it is used by {}", by.join(", ")),
        }
    }
}

impl std::error::Error for EditError {}

/// The source that is to be changed: the one that is named, or the first that can be.
pub(super) fn target(
    order: &[Arc<SourceHandle>],
    name: Option<&str>,
) -> Result<Arc<SourceHandle>, EditError> {
    let is_writable = |kept: &&Arc<SourceHandle>| kept.source.writer().is_some();
    let kept = match name {
        Some(name) => {
            let named = order.iter().find(|kept| kept.settings.name == name);
            let unknown = || EditError::Unknown(format!("there is no source `{name}`"));
            let named = if name == "file" {
                None
            } else {
                Some(named.ok_or_else(unknown)?)
            };
            named.filter(is_writable)
        }
        None => order.iter().find(is_writable),
    };
    kept.cloned().ok_or_else(|| read_only(order))
}

fn read_only(order: &[Arc<SourceHandle>]) -> EditError {
    let writable = order.iter().filter(|kept| kept.source.writer().is_some());
    EditError::ReadOnly {
        writable: writable.map(|kept| kept.settings.name.clone()).collect(),
    }
}

/// A document of a source, as a change to it would find it.
pub(super) fn raw(slot: &SourceState, kind: DocumentKind, name: &str) -> Option<Raw> {
    let in_part = |part: &LoadedPart| {
        let documents = part.documents.as_ref()?;
        documents.get(kind, name).map(str::to_owned)
    };
    let text = match slot.wrong.as_ref().and_then(|it| it.documents.as_ref()) {
        Some(documents) => documents.get(kind, name).map(str::to_owned),
        None => {
            let latest = slot.latest()?;
            latest.documents.as_ref()?;
            in_part(latest)
        }
    };
    let served = slot.good.as_deref().and_then(in_part);
    let waits = (text != served).then(|| waits(&slot.kept));
    Some(Raw { text, waits })
}

fn waits(kept: &SourceHandle) -> String {
    let why = kept.health.standing().trouble.unwrap_or_default();
    let name = &kept.settings.name;
    format!("what the source `{name}` says now is not served: {why}")
}

/// What a source said last, which changes are made to.
pub(super) fn base(
    slot: Option<&SourceState>,
    kept: &SourceHandle,
) -> Result<Arc<LoadedPart>, EditError> {
    let name = &kept.settings.name;
    if let Some(wrong) = slot.and_then(|slot| slot.wrong.as_ref()) {
        let Some(documents) = &wrong.documents else {
            let why = &wrong.why;
            return Err(EditError::InTheWay(format!(
                "the source `{name}` has what is not understood, and is not changed before that is \
                 put right there: {why}"
            )));
        };
        return Ok(Arc::new(LoadedPart::unread(
            wrong.version.clone(),
            documents.clone(),
        )));
    }
    let latest = slot.and_then(|slot| slot.latest().cloned());
    latest.ok_or_else(|| {
        let trouble = kept.health.standing().trouble.unwrap_or_default();
        EditError::Away(format!(
            "the source `{name}` has never been reached: {trouble}"
        ))
    })
}

/// What a source would say after `edits`, where nothing speaks against them before they are read.
pub(super) fn edited(
    view: &ServedConfig,
    order: &[Arc<SourceHandle>],
    (kept, latest): (&Arc<SourceHandle>, &LoadedPart),
    edits: &[Edit],
) -> Result<EditedPart, EditError> {
    let Some(documents) = &latest.documents else {
        return Err(read_only(order));
    };
    for edit in edits {
        let (kind, name) = (edit.kind, edit.name.as_str());
        let served = view.document(kind, name).and_then(|it| view.part_of(it));
        if served.is_some_and(|part| part.name != kept.settings.name) {
            return Err(read_only(order));
        }
        let there = documents.get(kind, name);
        match (&edit.over, there) {
            // What is none is in nobody's way who makes one.
            (None, Some(_)) if documents.is_sound(kind, name) => {
                let (word, waits) = (kind.word(), waits(kept));
                let message = format!("there is a {word} `{name}` already, and {waits}");
                return Err(EditError::InTheWay(message));
            }
            (Some(over), there) if there != Some(over) => {
                let now = view.version.clone();
                return Err(EditError::Stale { now });
            }
            _ => {}
        }
        if edit.document.is_none() {
            if there.is_none() {
                let message = format!("there is no {} `{name}`", kind.word());
                return Err(EditError::Unknown(message));
            }
            let by = users(view, edit, edits);
            if !by.is_empty() {
                return Err(EditError::Used { by });
            }
        }
    }
    let after = documents.with(edits).map_err(EditError::Refused)?;
    let count = |wrong: &Option<Vec<String>>| wrong.as_ref().map_or(0, Vec::len);
    let (wrong, before) = (after.wrong(), documents.wrong());
    if let Some(why) = &wrong {
        let why = why.join("\n");
        if count(&wrong) >= count(&before) {
            let name = &kept.settings.name;
            return Err(EditError::InTheWay(format!(
                "the source `{name}` has what is no document, which is put right or removed first: {why}"
            )));
        }
        return Ok(EditedPart::Less { after, why });
    }
    Ok(EditedPart::Sound(LoadedPart {
        text: after.to_text(),
        documents: Some(after),
        ..latest.clone()
    }))
}

/// What a source would say after a change.
#[derive(Debug)]
pub(super) enum EditedPart {
    /// This, of which everything is a document.
    Sound(LoadedPart),
    /// Less of it is none than was before, and yet some is: so it is put right one by one.
    Less { after: Documents, why: String },
}

/// The routes that go by a policy which is to be removed, and stay as they are.
fn users(view: &ServedConfig, removed: &Edit, edits: &[Edit]) -> Vec<String> {
    if removed.kind != DocumentKind::Policy {
        return Vec::new();
    }
    let is_edited = |name: &str| {
        let is_it = |it: &Edit| it.kind == DocumentKind::Route && it.name == name;
        edits.iter().any(is_it)
    };
    let routes = view.documents.iter();
    let routes = routes.filter(|it| it.kind == DocumentKind::Route && !is_edited(&it.name));
    let routes = routes.filter(|it| goes_by(&it.json, &removed.name));
    routes.map(|it| format!("route `{}`", it.name)).collect()
}

fn goes_by(route: &str, policy: &str) -> bool {
    let Ok(route) = serde_json::from_str::<Value>(route) else {
        return false;
    };
    match route.get("policy") {
        Some(Value::String(name)) => name == policy,
        Some(Value::Array(names)) => names.iter().any(|name| name == policy),
        _ => false,
    }
}
