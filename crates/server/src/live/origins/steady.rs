//! Protection against a source that had content and suddenly becomes empty.
//!
//! An empty body with the status `200`, a template that was rendered without its list, a key that was
//! cleared: an operator who wants to lift every limit of a source does not do it like that. So the
//! previous version stays, and the problem is reported. To remove the limits, remove the source from the
//! file. If changes are counted, as in Redis and etcd, an incremented count shows that the removal was
//! intended.

use crate::live::source::{
    Loaded, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError, Writer,
};
use crate::tasks::blocking;
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_policy::source::has_documents;

const NOTHING: &str = "it has no policies, guards or routes any more, which it had: to lift what they \
                       limit, take it out of `sources`";

/// A source that keeps its last version if it becomes empty unintentionally.
#[derive(Debug)]
pub(super) struct Steady {
    source: Box<dyn PolicyFetcher>,
    /// Its last version, or its fallback, had content.
    has_said: AtomicBool,
}

impl Steady {
    pub(super) fn new(source: Box<dyn PolicyFetcher>) -> Self {
        let fallback = source.fallback().and_then(Result::ok);
        let has_said = fallback.is_some_and(|part| has_documents(&part.text));
        Self {
            source,
            has_said: AtomicBool::new(has_said),
        }
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<Loaded, SourceError> {
        let part = match self.source.load(seen).await? {
            Loaded::Part(part) => part,
            loaded => return Ok(loaded),
        };
        let read = blocking(move || (says_something(&part), part));
        let read = read.await;
        let (says, part) =
            read.ok_or_else(|| SourceError("reading it came to no end".to_owned()))?;
        if !says && self.has_said.load(Relaxed) && !is_meant(&part) {
            let (version, why) = (part.version, NOTHING.to_owned());
            return Ok(Loaded::Wrong(SourceDefect::new(version, why)));
        }
        self.has_said.store(says, Relaxed);
        Ok(Loaded::Part(part))
    }
}

/// Returns true if the part has any documents. Parses the text, which takes time.
fn says_something(part: &LoadedPart) -> bool {
    match &part.documents {
        Some(documents) => !documents.is_empty(),
        None => has_documents(&part.text),
    }
}

/// Returns true if the removal of the last document was counted as a change.
fn is_meant(part: &LoadedPart) -> bool {
    part.documents.is_some() && part.version.is_counted()
}

impl PolicyFetcher for Steady {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Loaded, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.source.changed()
    }

    fn told(&self) -> BoxFuture<'_, ()> {
        self.source.told()
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
