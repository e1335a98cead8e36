//! A document at a URL, fetched only if it has changed.

use super::BYTES_MAX;
use super::translate::ForeignDocument;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::time::Duration;
use tidegate_config::compose::digest;
use tidegate_config::source::DocumentFormat;
use tidegate_net::tasks::blocking;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::{FetchedResponse, HttpFetch};
use tokio::time::sleep;

/// The maximum length of a tag that is sent back.
const TAG_MAX: usize = 1_024;

/// The prefix of the version of a document without a tag. No tag begins with it.
const UNTAGGED: char = '~';

/// A document at a URL.
#[derive(Debug)]
pub(super) struct HttpSource {
    name: String,
    errand: HttpFetch,
    headers: HeaderMap,
    format: DocumentFormat,
    every: Duration,
}

impl HttpSource {
    pub(super) fn new(
        name: &str,
        (url, tls): (&str, &ClientTls),
        (token, format): (Option<&Secret>, DocumentFormat),
        time_max: Duration,
        every: Duration,
    ) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::from_static("application/yaml, application/json");
        headers.insert(ACCEPT, accept);
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| "the token cannot be sent in a header".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            name: name.to_owned(),
            errand: HttpFetch::to(url, tls, time_max, BYTES_MAX)?,
            headers,
            format,
            every,
        })
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let mut headers = self.headers.clone();
        let tag = seen.filter(|it| !it.0.starts_with(UNTAGGED));
        let tag = tag.and_then(|tag| HeaderValue::from_str(&tag.0).ok());
        let is_tagged = tag.is_some();
        if let Some(tag) = tag {
            headers.insert(IF_NONE_MATCH, tag);
        }
        let answer = self.errand.run(Method::GET, headers, Bytes::new()).await;
        let answer = answer.map_err(|error| SourceError(error.to_string()))?;
        match answer.status {
            StatusCode::NOT_MODIFIED if is_tagged => Ok(LoadResult::Unchanged),
            StatusCode::OK => self.read(answer, seen).await,
            status => Err(SourceError(format!("the response status was {status}"))),
        }
    }

    async fn read(
        &self,
        answer: FetchedResponse,
        seen: Option<&Revision>,
    ) -> Result<LoadResult, SourceError> {
        let tag = answer.headers.get(ETAG).and_then(|it| it.to_str().ok());
        let tag = tag.filter(|tag| tag.len() <= TAG_MAX && !tag.starts_with(UNTAGGED));
        let tag = tag.map(str::to_owned);
        let body = answer.document();
        let body = body.map_err(|why| SourceError(why.to_owned()))?;
        let text = String::from_utf8(body.into());
        let text = text.map_err(|_| SourceError("it is not text in UTF-8".to_owned()))?;
        let version = match tag {
            Some(tag) => tag,
            None => format!("{UNTAGGED}{}", digest(&text)),
        };
        let version = Revision(version);
        if seen == Some(&version) {
            return Ok(LoadResult::Unchanged);
        }
        let (name, format) = (self.name.clone(), self.format);
        let read = blocking(move || {
            let foreign = ForeignDocument {
                name: &name,
                format,
                policy: &name,
                text: &text,
            };
            foreign.load(version)
        });
        read.await
            .ok_or_else(|| SourceError("the read did not finish".to_owned()))
    }
}

impl PolicyFetcher for HttpSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(self.every))
    }
}
