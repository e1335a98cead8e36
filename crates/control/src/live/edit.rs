//! Edits of a source's documents, requested through this server.

use super::composer::ReloadError;
use super::documents::Documents;
use super::source::LoadedPart;
use super::sources::{SourceHandle, SourceState};
use super::view::ServedConfig;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tidegate_config::ConfigErrors;
use tidegate_config::compose::DocumentKind;

/// One edit: replaces the document of that name, or removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) kind: DocumentKind,
    pub(crate) name: String,
    /// The document in JSON, as in its list: `{"name": "api", "limits": […]}`. `None` removes it.
    pub(crate) document: Option<String>,
    /// The text that the source must have now, [as seen before](SourceDocument::text). `None` creates a new
    /// document.
    pub(crate) over: Option<String>,
}

/// A document as its source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDocument {
    /// The text in JSON, including secrets; `None` if the source no longer has it.
    pub text: Option<String>,
    /// The reason why another version is served, for people, if so.
    pub waits: Option<String>,
}

/// The reason why an edit was not made, or is not served.
#[derive(Debug)]
pub(crate) enum EditError {
    /// The document is in a source that is read-only. `writable` lists the sources that can be written
    /// to.
    ReadOnly { writable: Vec<String> },
    /// A concurrent change was made first: this is the version now.
    Stale { now: String },
    /// The result would be invalid: all errors.
    Invalid(ConfigErrors),
    /// The result would be valid, but the running server cannot serve it.
    Refused(String),
    /// There is no such document, or no such source.
    Unknown(String),
    /// The document exists already, but is not served; or the source has an invalid document, which must
    /// be fixed before any other edit.
    InTheWay(String),
    /// The document cannot be removed: these use it.
    Used { by: Vec<String> },
    /// The source is unreachable, or rejected the write: nothing was written.
    Away(String),
    /// The result of the write is unknown.
    Doubtful(String),
    /// The edit was written, and is not served.
    Unserved(ReloadError),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { writable } if writable.is_empty() => {
                f.write_str("no config source is writable")
            }
            Self::ReadOnly { writable } => write!(
                f,
                "it is in a place that is read-only here; writable: {}",
                writable.join(", ")
            ),
            Self::Stale { now } => write!(
                f,
                "it was changed concurrently: the current version \
                is {now}"
            ),
            Self::Invalid(errors) => errors.fmt(f),
            Self::Refused(why)
            | Self::Away(why)
            | Self::Doubtful(why)
            | Self::Unknown(why)
            | Self::InTheWay(why) => f.write_str(why),
            Self::Unserved(why) => write!(f, "it was written, but is not served: {why}"),
            Self::Used { by } => write!(f, "it is used by {}", by.join(", ")),
        }
    }
}

impl std::error::Error for EditError {}

/// Returns the source to edit: the named one, or the first writable one.
pub(super) fn target(
    order: &[Arc<SourceHandle>],
    name: Option<&str>,
) -> Result<Arc<SourceHandle>, EditError> {
    let is_writable = |kept: &&Arc<SourceHandle>| kept.source.writer().is_some();
    let kept = match name {
        Some(name) => {
            let named = order.iter().find(|kept| kept.settings.name == name);
            let unknown = || EditError::Unknown(format!("unknown source `{name}`"));
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

/// Returns a document of a source, as an edit would find it.
pub(super) fn raw(slot: &SourceState, kind: DocumentKind, name: &str) -> Option<SourceDocument> {
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
    Some(SourceDocument { text, waits })
}

fn waits(kept: &SourceHandle) -> String {
    let why = kept.health.status().error.unwrap_or_default();
    let name = &kept.settings.name;
    format!("the current version of the source `{name}` is not served: {why}")
}

/// Returns the latest part of a source, to which edits apply.
pub(super) fn base(
    slot: Option<&SourceState>,
    kept: &SourceHandle,
) -> Result<Arc<LoadedPart>, EditError> {
    let name = &kept.settings.name;
    if let Some(wrong) = slot.and_then(|slot| slot.wrong.as_ref()) {
        let Some(documents) = &wrong.documents else {
            let why = &wrong.why;
            return Err(EditError::InTheWay(format!(
                "the source `{name}` has invalid content; fix it there before changing it here: \
                 {why}"
            )));
        };
        return Ok(Arc::new(LoadedPart::unread(
            wrong.version.clone(),
            documents.clone(),
        )));
    }
    let latest = slot.and_then(|slot| slot.latest().cloned());
    latest.ok_or_else(|| {
        let trouble = kept.health.status().error.unwrap_or_default();
        EditError::Away(format!("the source `{name}` was never reached: {trouble}"))
    })
}

/// Returns the part of a source after `edits`, or the error that rejects them before the result is
/// parsed.
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
            // An invalid document may be overwritten by a new one.
            (None, Some(_)) if documents.is_sound(kind, name) => {
                let (word, waits) = (kind.word(), waits(kept));
                let message = format!("{word} `{name}` already exists, and {waits}");
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
                let message = format!("unknown {} `{name}`", kind.word());
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
                "the source `{name}` has an invalid document; fix or remove it first: {why}"
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

/// The part of a source after an edit.
#[derive(Debug)]
pub(super) enum EditedPart {
    /// All its documents are valid.
    Sound(LoadedPart),
    /// Some documents are still invalid, but fewer than before: errors can be fixed one by one.
    Less { after: Documents, why: String },
}

/// Returns the routes that use a policy which is to be removed, and that the edits do not change.
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
