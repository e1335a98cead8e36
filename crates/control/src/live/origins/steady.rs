//! Protection against a source that had content and suddenly becomes empty.
//!
//! An empty body with the status `200`, a template that was rendered without its list, a key that was
//! cleared: an operator who wants to lift every limit of a source does not do it like that. So the
//! previous version stays, and the problem is reported. To remove the limits, remove the source from the
//! file. If changes are counted, as in Redis and etcd, an incremented count shows that the removal was
//! intended.

use crate::live::source::{
    LoadResult, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError, Writer,
};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_config::compose::has_documents;
use tidegate_net::tasks::blocking;

const NOTHING: &str = "it has no policies, guards or routes any more; to lift its limits, remove \
    it from `sources`";

/// A source that keeps its last version if it becomes empty unintentionally.
#[derive(Debug)]
pub(super) struct SteadySource {
    source: Box<dyn PolicyFetcher>,
    /// Its last version, or its fallback, had content.
    has_said: AtomicBool,
}

impl SteadySource {
    pub(super) fn new(source: Box<dyn PolicyFetcher>) -> Self {
        let fallback = source.fallback().and_then(Result::ok);
        let has_said = fallback.is_some_and(|part| has_documents(&part.text));
        Self {
            source,
            has_said: AtomicBool::new(has_said),
        }
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let part = match self.source.load(seen).await? {
            LoadResult::Part(part) => part,
            loaded => return Ok(loaded),
        };
        let read = blocking(move || (has_content(&part), part));
        let read = read.await;
        let (says, part) = read.ok_or_else(|| SourceError("the read did not finish".to_owned()))?;
        if !says && self.has_said.load(Relaxed) && !is_meant(&part) {
            let (version, why) = (part.version, NOTHING.to_owned());
            return Ok(LoadResult::Wrong(SourceDefect::new(version, why)));
        }
        self.has_said.store(says, Relaxed);
        Ok(LoadResult::Part(part))
    }
}

/// Returns true if the part has any documents. Parses the text, which takes time.
fn has_content(part: &LoadedPart) -> bool {
    match &part.documents {
        Some(documents) => !documents.is_empty(),
        None => has_documents(&part.text),
    }
}

/// Returns true if the removal of the last document was counted as a change.
fn is_meant(part: &LoadedPart) -> bool {
    part.documents.is_some() && part.version.is_counted()
}

impl PolicyFetcher for SteadySource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.source.changed()
    }

    fn notified(&self) -> BoxFuture<'_, ()> {
        self.source.notified()
    }

    fn decided(&self, version: &Revision, verdict: Result<(), &str>) {
        self.source.decided(version, verdict);
    }

    fn fallback(&self) -> Option<Result<LoadedPart, SourceError>> {
        self.source.fallback()
    }

    fn has_fallback(&self) -> bool {
        self.source.has_fallback()
    }

    fn writer(&self) -> Option<&dyn Writer> {
        self.source.writer()
    }
}
