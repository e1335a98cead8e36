//! Lists, reads, creates, changes and removes policies, guards and routes.

use super::editing::{self, EditTarget};
use super::modes::mode_of_document;
use super::usage::DocumentUsage;
use crate::doors::admin::api::Api;
use crate::doors::admin::api::call::AdminCall;
use crate::doors::admin::api::etag::ETag;
use crate::doors::admin::api::page;
use crate::doors::admin::api::patch;
use crate::doors::admin::api::path::encode;
use crate::doors::admin::api::respond::{AdminProblem, Done};
use crate::doors::admin::api::route::BASE;
use crate::live::ServedConfig;
use serde_json::{Value, json};
use tidegate_policy::mask;
use tidegate_policy::source::{ConfigDocument, DocumentKind};

/// Lists the documents of a kind that match the query.
pub(in super::super) async fn list(
    api: &Api,
    call: &AdminCall,
    kind: DocumentKind,
) -> Result<Done, AdminProblem> {
    let view = api.composer.view().await;
    let found: Vec<&ConfigDocument> = of(&view, kind)
        .filter(|it| is_wanted(&view, it, call))
        .collect();
    let usage = DocumentUsage::of(api, &view, kind).await?;
    let body = page::of(&found, &call.query, |document| {
        item(&view, document, &usage)
    });
    Ok(Done::seen(body).at(ETag::of_text(&view.version)))
}

/// Returns one document.
pub(in super::super) async fn get(
    api: &Api,
    call: &AdminCall,
    kind: DocumentKind,
) -> Result<Done, AdminProblem> {
    let view = api.composer.view().await;
    let target = EditTarget::find(&view, kind, call.param(kind.word()))?;
    show(api, &view, &target).await
}

/// Creates a document.
pub(in super::super) async fn create(
    api: &Api,
    call: &AdminCall,
    kind: DocumentKind,
) -> Result<Done, AdminProblem> {
    let field = kind.name_field();
    let name = call
        .body
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() {
        return Err(AdminProblem::senseless(field, "it needs a name"));
    }
    let source = call.query.text("source");
    let view = api.change(call, editing::create(api, source, (kind, name), &call.body));
    let view = view.await?;
    let target = EditTarget::find(&view, kind, name)?;
    let location = format!("{BASE}/{}/{}", kind.section(), encode(name));
    let usage = DocumentUsage::of(api, &view, kind).await?;
    let item = item(&view, target.document, &usage);
    Ok(Done::created(item, location).at(target.etag()))
}

/// Applies a merge patch to a document.
pub(in super::super) async fn change(
    api: &Api,
    call: &AdminCall,
    kind: DocumentKind,
) -> Result<Done, AdminProblem> {
    let name = call.param(kind.word());
    let renamed = call.body.get(kind.name_field());
    if renamed.is_some_and(|renamed| renamed.as_str() != Some(name)) {
        let why = "a name cannot be changed: buckets are named after it";
        return Err(AdminProblem::senseless(kind.name_field(), why));
    }
    let patched = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        patch::merge(document, &call.body);
        Ok(())
    };
    let view = api.change(call, editing::edit(api, (kind, name), patched));
    let view = view.await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Removes a document that is not in use.
pub(in super::super) async fn remove(
    api: &Api,
    call: &AdminCall,
    kind: DocumentKind,
) -> Result<Done, AdminProblem> {
    let name = call.param(kind.word());
    api.change(call, editing::remove(api, call, (kind, name)))
        .await?;
    Ok(Done::gone())
}

/// Returns an existing document as a response.
pub(super) async fn show(
    api: &Api,
    view: &ServedConfig,
    target: &EditTarget<'_>,
) -> Result<Done, AdminProblem> {
    let usage = DocumentUsage::of(api, view, target.document.kind).await?;
    Ok(Done::seen(item(view, target.document, &usage)).at(target.etag()))
}

/// Returns the documents of a kind, in evaluation order.
pub(super) fn of(view: &ServedConfig, kind: DocumentKind) -> impl Iterator<Item = &ConfigDocument> {
    view.documents.iter().filter(move |it| it.kind == kind)
}

fn is_wanted(view: &ServedConfig, document: &ConfigDocument, call: &AdminCall) -> bool {
    let name = call.query.text("name");
    let source = call.query.text("source");
    let mode = call.query.text("mode");
    let is_in = |mode| mode_of_document(document.kind, &value(document)) == Some(mode);
    let part = view.part_of(document).map(|part| part.name.as_str());
    name.is_none_or(|name| document.name.starts_with(name))
        && source.is_none_or(|source| part == Some(source))
        && mode.is_none_or(is_in)
}

/// Returns a document as JSON, with its source and its users.
fn item(view: &ServedConfig, document: &ConfigDocument, usage: &DocumentUsage) -> Value {
    let value = value(document);
    let part = view.part_of(document);
    let mut item = json!({
        "name": document.name,
        "source": part.map(|part| part.name.as_str()),
        "writable": part.is_some_and(|part| part.is_writable),
        "version": ETag::of_text(&document.digest).as_str(),
        "used_by": usage.shown(document),
        "document": mask::hidden(&value),
    });
    let mode = mode_of_document(document.kind, &value);
    if let (Value::Object(item), Some(mode)) = (&mut item, mode) {
        item.insert("mode".to_owned(), mode.into());
    }
    item
}

/// Returns the content of a document.
pub(super) fn value(document: &ConfigDocument) -> Value {
    // Valid: Tidegate serialized it.
    serde_json::from_str(&document.json).unwrap_or_default()
}
