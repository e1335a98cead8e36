//! A source that had something to say is not believed when it has nothing.
//!
//! An empty answer with the status `200`, a template that came out without its list, a key that was
//! cleared: nobody who wants every limit of a source lifted says so by saying nothing. So what was said
//! before stands, and it is told. Whoever means it takes the source out of the file; and where changes
//! are counted, as in Redis and etcd, a count that goes on says that somebody meant it.

use crate::live::source::{
    Loaded, LoadedPart, PolicyFetcher, Revision, SourceDefect, SourceError, Writer,
};
use crate::tasks::blocking;
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_policy::source::has_documents;

const NOTHING: &str = "it has no policies, guards or routes any more, which it had: to lift what they \
                       limit, take it out of `sources`";

/// A source whose last word is not taken back by silence.
#[derive(Debug)]
pub(super) struct Steady {
    source: Box<dyn PolicyFetcher>,
    /// Whether it had anything to say when it last spoke, or its fallback has.
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

/// Takes as long as reading it does.
fn says_something(part: &LoadedPart) -> bool {
    match &part.documents {
        Some(documents) => !documents.is_empty(),
        None => has_documents(&part.text),
    }
}

/// Whether somebody counted on while removing the last document.
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
