//! How documents are changed: of the version that was seen, validated with all the rest, and written
//! down.

use super::documents::value;
use super::usage::Usage;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::audit::Change;
use crate::doors::admin::api::call::Call;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::mask;
use crate::doors::admin::api::respond::Refusal;
use crate::live::{Edit, EditError, PartView, View};
use crate::wire::fault::quote;
use serde_json::Value;
use std::sync::Arc;
use tidegate_policy::source::{Document, DocumentKind};

/// How often a change is tried that others were quicker with, who changed something else.
const TRIES_MAX: usize = 8;

/// What came of a change: what is served now, and what to write down of it.
pub(super) type Edited = Result<(Arc<View>, Option<Change>), Refusal>;

/// What it is, and what it is called.
pub(super) type Name<'a> = (DocumentKind, &'a str);

/// A document that is there.
#[derive(Debug)]
pub(super) struct Target<'v> {
    pub(super) document: &'v Document,
    part: Option<&'v PartView>,
    /// What it says, as far as it can be shown.
    pub(super) shown: Value,
}

impl<'v> Target<'v> {
    /// The document of this name.
    pub(super) fn find(view: &'v View, kind: DocumentKind, name: &str) -> Result<Self, Refusal> {
        let found = view.document(kind, name);
        let document = found.ok_or_else(|| Refusal::unknown(kind.word(), name))?;
        Ok(Self {
            document,
            part: view.part_of(document),
            shown: value(document),
        })
    }

    /// Which version it is of.
    pub(super) fn etag(&self) -> ETag {
        ETag::of(&self.shown)
    }

    /// Where it can be changed; a refusal that names where it stands, if that is nowhere.
    fn writable(&self, view: &View) -> Result<&str, Refusal> {
        match self.part {
            Some(part) if part.is_writable => Ok(&part.name),
            part => {
                let what = self.document.kind.word();
                let name = quote(&self.document.name);
                let place = part.map_or_else(String::new, place);
                let detail = format!("{what} {name} stands in {place}, which is not changed here");
                let help = writable(view);
                Err(Refusal::new(409, detail).with_help("source", "read-only", Some(&help)))
            }
        }
    }
}

/// Makes a document, in `source` or wherever there is room.
pub(super) async fn create(
    api: &Api,
    source: Option<&str>,
    (kind, name): Name<'_>,
    document: &Value,
) -> Edited {
    refuse_masks(document)?;
    for _ in 0..TRIES_MAX {
        let view = api.composer.view();
        if let Ok(there) = Target::find(&view, kind, name) {
            let part = there.part.map_or_else(String::new, place);
            let detail = format!(
                "there is a {} {} already, in {part}",
                kind.word(),
                quote(name)
            );
            return Err(Refusal::new(409, detail));
        }
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: Some(document.to_string()),
        };
        let edited = api.composer.edit(source, &view.version, vec![edit]).await;
        match edited {
            Ok(now) => {
                let change = Change {
                    target: target(kind, name),
                    before: Value::Null,
                    after: document.clone(),
                };
                return Ok((now, Some(change)));
            }
            Err(EditError::Stale { .. }) => {}
            Err(error) => return Err(refusal(&view, error)),
        }
    }
    Err(outrun())
}

/// Changes a document as `change` says, which is shown what callers see of it, and has the document
/// itself. It checks whether that is what was seen.
pub(super) async fn edit(
    api: &Api,
    (kind, name): Name<'_>,
    change: impl Fn(&Value, &mut Value) -> Result<(), Refusal>,
) -> Edited {
    for _ in 0..TRIES_MAX {
        let view = api.composer.view();
        let found = Target::find(&view, kind, name)?;
        let raw = api.composer.raw(kind, name).await;
        let before = raw.and_then(|it| serde_json::from_str(&it).ok());
        let before: Value = before.unwrap_or_else(|| found.shown.clone());
        let mut after = before.clone();
        change(&found.shown, &mut after)?;
        let source = found.writable(&view)?;
        refuse_masks(&after)?;
        if after == before {
            return Ok((Arc::clone(&view), None));
        }
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: Some(after.to_string()),
        };
        let edited = api
            .composer
            .edit(Some(source), &view.version, vec![edit])
            .await;
        match edited {
            Ok(now) => {
                let change = Change {
                    target: target(kind, name),
                    before,
                    after,
                };
                return Ok((now, Some(change)));
            }
            Err(EditError::Stale { .. }) => {}
            Err(error) => return Err(refusal(&view, error)),
        }
    }
    Err(outrun())
}

/// Removes a document that nobody uses, of the version that the caller has seen.
pub(super) async fn remove(api: &Api, call: &Call, (kind, name): Name<'_>) -> Edited {
    for _ in 0..TRIES_MAX {
        let view = api.composer.view();
        let found = Target::find(&view, kind, name)?;
        call.expected.check(&found.etag())?;
        let source = found.writable(&view)?;
        let users = Usage::of(api, kind).await?.told(&view, found.document);
        if !users.is_empty() {
            return Err(used(kind.word(), name, &users));
        }
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: None,
        };
        let edited = api
            .composer
            .edit(Some(source), &view.version, vec![edit])
            .await;
        match edited {
            Ok(now) => {
                let change = Change {
                    target: target(kind, name),
                    before: found.shown.clone(),
                    after: Value::Null,
                };
                return Ok((now, Some(change)));
            }
            Err(EditError::Stale { .. }) => {}
            Err(error) => return Err(refusal(&view, error)),
        }
    }
    Err(outrun())
}

/// Something cannot go while others use it.
pub(super) fn used(what: &str, name: &str, users: &[String]) -> Refusal {
    let detail = format!("{what} {} is used by {}", quote(name), users.join(", "));
    let mut refusal = Refusal::new(409, detail);
    for user in users {
        refusal = refusal.with("used_by", user);
    }
    refusal
}

/// What the audit calls it.
fn target(kind: DocumentKind, name: &str) -> String {
    format!("{}/{name}", kind.word())
}

/// What was hidden from the caller, and comes back as it was shown, would be lost.
fn refuse_masks(document: &Value) -> Result<(), Refusal> {
    if !mask::is_masked(document) {
        return Ok(());
    }
    let why = "`***` stands where a secret is not shown: send the secret itself, or leave it out";
    Err(Refusal::senseless("body", why))
}

fn refusal(view: &View, error: EditError) -> Refusal {
    match error {
        EditError::ReadOnly { .. } => {
            let places: Vec<String> = view.parts.iter().map(place).collect();
            let detail = format!(
                "policy comes from {}, which is not changed here",
                places.join(", ")
            );
            let help = writable(view);
            Refusal::new(409, detail).with_help("source", "read-only", Some(&help))
        }
        EditError::Stale { .. } => outrun(),
        EditError::Invalid(errors) => Refusal::unsound(&errors),
        EditError::Refused(why) => Refusal::senseless("body", why),
        EditError::Unknown(why) => Refusal::senseless("query.source", why),
        EditError::Used { by } => {
            let refusal = Refusal::new(409, format!("it is used by {}", by.join(", ")));
            by.iter()
                .fold(refusal, |refusal, user| refusal.with("used_by", user))
        }
        EditError::Away(why) => Refusal::away(why),
    }
}

fn outrun() -> Refusal {
    Refusal::new(409, "others keep changing something: try again")
}

/// Where something stands, for people.
fn place(part: &PartView) -> String {
    format!("{} ({})", quote(&part.name), part.kind)
}

/// What would be needed to change something here.
fn writable(view: &View) -> String {
    let writable = view.parts.iter().filter(|part| part.is_writable);
    let names: Vec<String> = writable.map(|part| quote(&part.name)).collect();
    match names.as_slice() {
        [] => "a source with `writable: true` (Redis, etcd) could be changed here".to_owned(),
        names => format!("what stands in {} can be changed here", names.join(", ")),
    }
}
