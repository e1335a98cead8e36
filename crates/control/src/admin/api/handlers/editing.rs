//! Changes documents: checks the version that the caller has seen, validates the whole configuration, and
//! records the change.

use super::documents::value;
use super::usage::DocumentUsage;
use crate::admin::api::Api;
use crate::admin::api::audit::{AuditOutcome, AuditedChange};
use crate::admin::api::etag::ETag;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::routing::call::AdminCall;
use crate::live::{Edit, EditError, PartView, ReloadError, ServedConfig, SourceDocument};
use serde_json::Value;
use std::sync::Arc;
use tidegate_config::compose::{ConfigDocument, DocumentKind, digest};
use tidegate_frontends::wire::fault::quote;
use tidegate_policy::redact;

/// The number of attempts for a change that conflicts with concurrent changes of other documents.
const TRIES_MAX: usize = 8;

/// The result of a change: the configuration now served, and the change to record.
pub(super) type EditResult = Result<(Arc<ServedConfig>, Option<AuditedChange>), AdminProblem>;

/// The kind and the name of a document.
pub(super) type DocumentRef<'a> = (DocumentKind, &'a str);

/// An existing document.
#[derive(Debug)]
pub(super) struct EditTarget<'v> {
    pub(super) document: &'v ConfigDocument,
    part: Option<&'v PartView>,
    /// Its content, with secrets masked.
    pub(super) shown: Value,
}

impl<'v> EditTarget<'v> {
    /// Returns the document of this name.
    pub(super) fn find(
        view: &'v ServedConfig,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Self, AdminProblem> {
        let found = view.document(kind, name);
        let document = found.ok_or_else(|| AdminProblem::not_found(kind.word(), name))?;
        Ok(Self {
            document,
            part: view.part_of(document),
            shown: value(document),
        })
    }

    /// Returns its version.
    pub(super) fn etag(&self) -> ETag {
        ETag::of_text(&self.document.digest)
    }

    /// Returns the writable source of the document. The error names the source that it is in.
    fn writable(&self, view: &ServedConfig) -> Result<&str, AdminProblem> {
        match self.part {
            Some(part) if part.is_writable => Ok(&part.name),
            part => {
                let what = self.document.kind.word();
                let name = quote(&self.document.name);
                let place = part.map_or_else(String::new, place);
                let detail =
                    format!("{what} {name} comes from {place}, which the admin API cannot change");
                let help = writable(view);
                Err(AdminProblem::conflict(detail).with_help("source", "read-only", Some(&help)))
            }
        }
    }
}

/// A document as its source has it: the base of a change.
struct StoredText {
    /// The stored text, if known.
    text: Option<String>,
    /// The stored document, if another version of it is served, and the reason.
    waits: Option<(ConfigDocument, String)>,
}

impl StoredText {
    /// Returns the stored form of the document that is served as `found`. Fails if its source no longer
    /// has it.
    async fn of(api: &Api, found: &EditTarget<'_>) -> Result<Self, AdminProblem> {
        let document = found.document;
        let (kind, name) = (document.kind, &document.name);
        let source = found.part.map_or("", |part| part.name.as_str());
        let raw = api.composer.raw(source, kind, name).await;
        match raw {
            None => Ok(Self {
                text: None,
                waits: None,
            }),
            Some(SourceDocument { text, waits: None }) => Ok(Self { text, waits: None }),
            Some(SourceDocument {
                text: None,
                waits: Some(why),
            }) => {
                let detail = format!("{} {} is gone from there", kind.word(), quote(name));
                Err(AdminProblem::stale(detail).with("source", why))
            }
            Some(SourceDocument {
                text: Some(text),
                waits: Some(why),
            }) => {
                // A text that cannot be parsed is replaced, starting from the served document.
                let waiting_value = serde_json::from_str(&text).unwrap_or_else(|_| value(document));
                // No caller has seen this document, so it matches no version that a caller has seen.
                let waiting = ConfigDocument {
                    json: redact::hidden(&waiting_value).to_string(),
                    digest: digest(&text),
                    limit_digests: Vec::new(),
                    ..document.clone()
                };
                Ok(Self {
                    text: Some(text),
                    waits: Some((waiting, why)),
                })
            }
        }
    }

    /// Returns the document to change, of which `found` is the served version.
    fn target<'v>(&'v self, found: &EditTarget<'v>) -> EditTarget<'v> {
        let document = match &self.waits {
            Some((waiting, _)) => waiting,
            None => found.document,
        };
        EditTarget {
            document,
            part: found.part,
            shown: value(document),
        }
    }

    /// Returns the result of a change that changes nothing. This is an error only if the stored document
    /// is not the served one.
    fn unchanged(&self, view: &Arc<ServedConfig>) -> EditResult {
        let Some((_, why)) = &self.waits else {
            return Ok((Arc::clone(view), None));
        };
        let refusal = AdminProblem::invalid("body", why);
        Err(refusal.with(
            "source",
            "it already stores this document, but the document is not served",
        ))
    }

    /// Adds to an error that the stored document is not the served one, if so: that may be the cause.
    fn with_stored_problem(&self, refusal: AdminProblem) -> AdminProblem {
        let Some((_, why)) = &self.waits else {
            return refusal;
        };
        let help = "fix the document in its source, or overwrite it with `If-Match: *`";
        refusal.with_help("source", why, Some(help))
    }
}

/// Creates a document in `source`, or in the first writable source.
pub(super) async fn create(
    api: &Api,
    source: Option<&str>,
    (kind, name): DocumentRef<'_>,
    document: &Value,
) -> EditResult {
    refuse_masks(document)?;
    for _ in 0..TRIES_MAX {
        let view = api.composer.view().await;
        if let Ok(there) = EditTarget::find(&view, kind, name) {
            let part = there.part.map_or_else(String::new, place);
            let detail = format!(
                "there is a {} {} already, in {part}",
                kind.word(),
                quote(name)
            );
            return Err(AdminProblem::conflict(detail));
        }
        let change = AuditedChange {
            target: target(kind, name),
            before: Value::Null,
            after: document.clone(),
        };
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: Some(document.to_string()),
            over: None,
        };
        if let Some(edited) = submit(api, &view, (source, edit), change).await? {
            return Ok(edited);
        }
    }
    Err(outrun())
}

/// Changes a document with `change`, which gets the current configuration and the document, and checks
/// the version that the caller has seen.
pub(super) async fn edit(
    api: &Api,
    (kind, name): DocumentRef<'_>,
    change: impl Fn(&EditTarget<'_>, &mut Value) -> Result<(), AdminProblem>,
) -> EditResult {
    for _ in 0..TRIES_MAX {
        let view = api.composer.view().await;
        let found = EditTarget::find(&view, kind, name)?;
        let written = StoredText::of(api, &found).await?;
        let there = written.target(&found);
        let text = written.text.as_ref();
        let before = text.and_then(|it| serde_json::from_str(it).ok());
        let before: Value = before.unwrap_or_else(|| there.shown.clone());
        let mut after = before.clone();
        change(&there, &mut after).map_err(|it| written.with_stored_problem(it))?;
        let source = found.writable(&view)?;
        refuse_masks(&after)?;
        if after == before {
            return written.unchanged(&view);
        }
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: Some(after.to_string()),
            over: written.text.clone(),
        };
        let change = AuditedChange {
            target: target(kind, name),
            before,
            after,
        };
        if let Some(edited) = submit(api, &view, (Some(source), edit), change).await? {
            return Ok(edited);
        }
    }
    Err(outrun())
}

/// Removes a document that is not in use, of the version that the caller has seen.
pub(super) async fn remove(
    api: &Api,
    call: &AdminCall,
    (kind, name): DocumentRef<'_>,
) -> EditResult {
    for _ in 0..TRIES_MAX {
        let view = api.composer.view().await;
        let found = match EditTarget::find(&view, kind, name) {
            Ok(found) => found,
            Err(unknown) => match api.composer.unserved(kind, name).await {
                Some(there) => match remove_unserved(api, call, (kind, name), there).await? {
                    Some(edited) => return Ok(edited),
                    None => continue,
                },
                None => return Err(unknown),
            },
        };
        let written = StoredText::of(api, &found).await?;
        let there = written.target(&found);
        let expected = call.expected.check(&there.etag());
        expected.map_err(|it| written.with_stored_problem(it))?;
        let source = found.writable(&view)?;
        let users = DocumentUsage::of(api, &view, kind)
            .await?
            .names_of_users(found.document);
        if !users.is_empty() {
            return Err(used(kind.word(), name, &users));
        }
        let edit = Edit {
            kind,
            name: name.to_owned(),
            document: None,
            over: written.text.clone(),
        };
        let change = AuditedChange {
            target: target(kind, name),
            before: there.shown.clone(),
            after: Value::Null,
        };
        if let Some(edited) = submit(api, &view, (Some(source), edit), change).await? {
            return Ok(edited);
        }
    }
    Err(outrun())
}

/// Removes a stored text that is not served: it is no valid document, or was rejected.
async fn remove_unserved(
    api: &Api,
    call: &AdminCall,
    (kind, name): DocumentRef<'_>,
    (source, text): (String, String),
) -> Result<Option<(Arc<ServedConfig>, Option<AuditedChange>)>, AdminProblem> {
    call.expected.check(&ETag::of_text(&digest(&text)))?;
    let view = api.composer.view().await;
    let change = AuditedChange {
        target: target(kind, name),
        // A text that cannot be parsed cannot be masked either.
        before: serde_json::from_str(&text).unwrap_or_else(|_| "not JSON".into()),
        after: Value::Null,
    };
    let edit = Edit {
        kind,
        name: name.to_owned(),
        document: None,
        over: Some(text),
    };
    submit(api, &view, (Some(&source), edit), change).await
}

/// Writes a change and serves it. Returns `None` on a conflict with a concurrent change.
async fn submit(
    api: &Api,
    view: &ServedConfig,
    (source, edit): (Option<&str>, Edit),
    change: AuditedChange,
) -> Result<Option<(Arc<ServedConfig>, Option<AuditedChange>)>, AdminProblem> {
    let edited = api.composer.edit(source, &view.version, vec![edit]).await;
    let error = match edited {
        Ok(now) => return Ok(Some((now, Some(change)))),
        Err(EditError::Stale { .. }) => return Ok(None),
        Err(error) => error,
    };
    let outcome = match error {
        EditError::Doubtful(_) => Some(AuditOutcome::Unknown),
        EditError::Unserved(_) => Some(AuditOutcome::RefusedAfterWriting),
        _ => None,
    };
    let refusal = refusal(view, error);
    Err(match outcome {
        Some(outcome) => refusal.with_change(outcome, change),
        None => refusal,
    })
}

/// Reports that something cannot be removed while it is in use.
pub(super) fn used(what: &str, name: &str, users: &[String]) -> AdminProblem {
    let detail = format!("{what} {} is used by {}", quote(name), users.join(", "));
    let mut refusal = AdminProblem::conflict(detail);
    for user in users {
        refusal = refusal.with("used_by", user);
    }
    refusal
}

/// Returns the name of a document in the audit log.
fn target(kind: DocumentKind, name: &str) -> String {
    format!("{}/{name}", kind.word())
}

/// Rejects a document that contains masks: the masked secrets would be lost.
fn refuse_masks(document: &Value) -> Result<(), AdminProblem> {
    if !redact::is_masked(document) {
        return Ok(());
    }
    let why = "`***` replaces a secret that is not shown: send the secret, or omit the field";
    Err(AdminProblem::invalid("body", why))
}

fn refusal(view: &ServedConfig, error: EditError) -> AdminProblem {
    match error {
        EditError::ReadOnly { .. } => {
            let places: Vec<String> = view.parts.iter().map(place).collect();
            let detail = format!(
                "policy comes from {}, which the admin API cannot change",
                places.join(", ")
            );
            let help = writable(view);
            AdminProblem::conflict(detail).with_help("source", "read-only", Some(&help))
        }
        EditError::Stale { .. } => outrun(),
        EditError::Invalid(errors) => AdminProblem::invalid_config(&errors),
        EditError::Refused(why) => AdminProblem::invalid("body", why),
        EditError::InTheWay(why) => AdminProblem::conflict(why),
        EditError::Unknown(why) => AdminProblem::invalid("query.source", why),
        EditError::Used { by } => {
            let refusal = AdminProblem::conflict(format!("it is used by {}", by.join(", ")));
            by.iter()
                .fold(refusal, |refusal, user| refusal.with("used_by", user))
        }
        EditError::Away(why) | EditError::Doubtful(why) => AdminProblem::unavailable(why),
        EditError::Unserved(why) => {
            let refusal = match why {
                ReloadError::Invalid(errors) => AdminProblem::invalid_config(&errors),
                why => AdminProblem::invalid("body", why.to_string()),
            };
            refusal.with("source", "the document was stored, but is not served")
        }
    }
}

fn outrun() -> AdminProblem {
    AdminProblem::conflict("the configuration keeps changing concurrently: try again")
}

/// Returns a source's name and kind, for messages.
fn place(part: &PartView) -> String {
    format!("{} ({})", quote(&part.name), part.kind)
}

/// Returns a hint about the writable sources, for messages.
fn writable(view: &ServedConfig) -> String {
    let writable = view.parts.iter().filter(|part| part.is_writable);
    let names: Vec<String> = writable.map(|part| quote(&part.name)).collect();
    match names.as_slice() {
        [] => "to use the admin API, store it in Redis, in etcd or as `documents` in MongoDB"
            .to_owned(),
        names => format!("the admin API can change documents in {}", names.join(", ")),
    }
}
