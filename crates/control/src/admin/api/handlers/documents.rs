//! Lists, reads, creates, changes and removes policies, guards and routes.

use super::editing::{self, EditTarget};
use super::modes::mode_of_document;
use super::usage::DocumentUsage;
use crate::admin::api::Api;
use crate::admin::api::bodies::documents::{DocumentItem, DocumentView};
use crate::admin::api::bodies::page::ListPage;
use crate::admin::api::bodies::{LanguageDocument, MergePatch, NoContent};
use crate::admin::api::etag::ETag;
use crate::admin::api::patch;
use crate::admin::api::problem::AdminProblem;
use crate::admin::api::reply::{AdminReply, ReplyResult};
use crate::admin::api::routing::call::AdminCall;
use crate::admin::api::routing::path::encode;
use crate::admin::api::routing::route::BASE;
use crate::live::ServedConfig;
use serde_json::Value;
use tidegate_config::compose::{ConfigDocument, DocumentKind};
use tidegate_policy::redact;

/// Lists the documents of a kind that match the query.
pub(in super::super) async fn list<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<ListPage<V>> {
    let view = api.composer.view().await;
    let found: Vec<&ConfigDocument> = of(&view, V::KIND)
        .filter(|it| is_wanted(&view, it, call))
        .collect();
    let usage = DocumentUsage::of(api, &view, V::KIND).await?;
    let page = ListPage::of(&found, &call.query, |document| {
        item(&view, document, &usage)
    });
    Ok(AdminReply::ok(page).at(ETag::of_text(&view.version)))
}

/// Returns one document.
pub(in super::super) async fn get<V: DocumentView>(api: &Api, call: &AdminCall) -> ReplyResult<V> {
    let view = api.composer.view().await;
    let target = EditTarget::find(&view, V::KIND, call.param(V::KIND.word()))?;
    show(api, &view, &target).await
}

/// Creates a document.
pub(in super::super) async fn create<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
    LanguageDocument(document): LanguageDocument,
) -> ReplyResult<V> {
    let (kind, field) = (V::KIND, DocumentKind::NAME_FIELD);
    let document = Value::Object(document);
    let name = document.get(field).and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.is_empty() {
        return Err(AdminProblem::invalid(field, "it needs a name"));
    }
    let source = call.query.text("source");
    let view = api.change(call, editing::create(api, source, (kind, name), &document));
    let view = view.await?;
    let target = EditTarget::find(&view, kind, name)?;
    let location = format!("{BASE}/{}/{}", kind.section(), encode(name));
    Ok(show(api, &view, &target).await?.created(location))
}

/// Applies a merge patch to a document.
pub(in super::super) async fn change<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
    MergePatch(patch): MergePatch,
) -> ReplyResult<V> {
    let (kind, field) = (V::KIND, DocumentKind::NAME_FIELD);
    let name = call.param(kind.word());
    let renamed = patch.get(field);
    if renamed.is_some_and(|renamed| renamed.as_str() != Some(name)) {
        let why = "a name cannot be changed: buckets are named after it";
        return Err(AdminProblem::invalid(field, why));
    }
    let patch = Value::Object(patch);
    let patched = |found: &EditTarget<'_>, document: &mut Value| {
        call.expected.check(&found.etag())?;
        patch::merge(document, &patch);
        Ok(())
    };
    let view = api.change(call, editing::edit(api, (kind, name), patched));
    let view = view.await?;
    let target = EditTarget::find(&view, kind, name)?;
    show(api, &view, &target).await
}

/// Removes a document that is not in use.
pub(in super::super) async fn remove<V: DocumentView>(
    api: &Api,
    call: &AdminCall,
) -> ReplyResult<NoContent> {
    let name = call.param(V::KIND.word());
    api.change(call, editing::remove(api, call, (V::KIND, name)))
        .await?;
    Ok(AdminReply::no_content())
}

/// Returns an existing document as a response.
pub(super) async fn show<V: DocumentView>(
    api: &Api,
    view: &ServedConfig,
    target: &EditTarget<'_>,
) -> ReplyResult<V> {
    let usage = DocumentUsage::of(api, view, V::KIND).await?;
    Ok(AdminReply::ok(item(view, target.document, &usage)).at(target.etag()))
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

/// Returns the view of a document, with its source and its users.
fn item<V: DocumentView>(
    view: &ServedConfig,
    document: &ConfigDocument,
    usage: &DocumentUsage,
) -> V {
    let value = value(document);
    let part = view.part_of(document);
    let mode = mode_of_document(document.kind, &value).unwrap_or_default();
    let common = DocumentItem {
        name: document.name.clone(),
        source: part.map(|part| part.name.clone()),
        writable: part.is_some_and(|part| part.is_writable),
        version: ETag::of_text(&document.digest).as_str().to_owned(),
        used_by: usage.users(document),
        document: redact::hidden(&value),
    };
    V::new(common, mode.to_owned())
}

/// Returns the content of a document.
pub(super) fn value(document: &ConfigDocument) -> Value {
    // Valid: Tidegate serialized it.
    serde_json::from_str(&document.json).unwrap_or_default()
}
