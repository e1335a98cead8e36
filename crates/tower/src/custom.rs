//! Responses that the application writes itself.

use crate::RequestHead;
use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use std::sync::Arc;
use tidegate::{CheckError, Decision};

/// A complete response.
pub(crate) type LayerResponse = Response<Bytes>;

type RefusalHandler = dyn Fn(RequestHead<'_>, &Decision) -> LayerResponse + Send + Sync;
type ErrorHandler = dyn Fn(RequestHead<'_>, &CheckError) -> LayerResponse + Send + Sync;

/// The functions of the application that write responses to requests that do not reach it.
#[derive(Clone, Default)]
pub(crate) struct ResponseHandlers {
    refusal: Option<Arc<RefusalHandler>>,
    error: Option<Arc<ErrorHandler>>,
}

impl ResponseHandlers {
    pub(crate) fn set_refusal<B: Into<Bytes>>(
        &mut self,
        handler: impl Fn(RequestHead<'_>, &Decision) -> Response<B> + Send + Sync + 'static,
    ) {
        let handler = move |head: RequestHead<'_>, decision: &Decision| {
            handler(head, decision).map(Into::into)
        };
        self.refusal = Some(Arc::new(handler));
    }

    pub(crate) fn set_error<B: Into<Bytes>>(
        &mut self,
        handler: impl Fn(RequestHead<'_>, &CheckError) -> Response<B> + Send + Sync + 'static,
    ) {
        let handler =
            move |head: RequestHead<'_>, error: &CheckError| handler(head, error).map(Into::into);
        self.error = Some(Arc::new(handler));
    }

    /// Returns the response to a refused request. `usual` is the response without a handler.
    pub(crate) fn refused(
        &self,
        usual: LayerResponse,
        decision: &Decision,
        head: RequestHead<'_>,
    ) -> LayerResponse {
        match &self.refusal {
            Some(handler) => complete(handler(head, decision), &usual),
            None => usual,
        }
    }

    /// Returns the response to a request that could not be decided. `usual` is the response without a handler.
    pub(crate) fn undecided(
        &self,
        usual: LayerResponse,
        error: &CheckError,
        head: RequestHead<'_>,
    ) -> LayerResponse {
        match &self.error {
            Some(handler) => complete(handler(head, error), &usual),
            None => usual,
        }
    }
}

/// Adds the headers of `usual` that the response of a handler does not have, except those about its body.
fn complete(mut custom: LayerResponse, usual: &LayerResponse) -> LayerResponse {
    let headers = custom.headers_mut();
    for name in usual.headers().keys() {
        let is_of_body = name == CONTENT_TYPE || name == CONTENT_LENGTH;
        if is_of_body || headers.contains_key(name) {
            continue;
        }
        for value in usual.headers().get_all(name) {
            headers.append(name, value.clone());
        }
    }
    custom
}
