//! The head of a request, as extractors see it.

use http::{Extensions, HeaderMap, Method, Request, Uri, request::Parts};
use std::any::Any;
use std::fmt;

/// The head of a request: everything but its body. Cheap to copy.
///
/// ```
/// use tidegate_tower::RequestHead;
///
/// let request = http::Request::get("/search?q=tide").header("x-user", "ann").body(())?;
/// let head = RequestHead::of(&request);
/// assert_eq!(head.header("X-User"), Some("ann"));
/// assert_eq!(head.uri().path(), "/search");
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestHead<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: &'r Extensions,
}

impl<'r> RequestHead<'r> {
    /// The head of `request`.
    pub fn of<B>(request: &'r Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    pub(crate) fn of_parts(parts: &'r Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }

    /// The method.
    pub fn method(self) -> &'r Method {
        self.method
    }

    /// The target as the service behind the layer sees it. Inside a router of axum's that is
    /// [nested](https://docs.rs/axum/0.8/axum/struct.Router.html#method.nest) that is without what
    /// the router is nested at; [`target`](Self::target) is the whole of it.
    pub fn uri(self) -> &'r Uri {
        self.uri
    }

    /// The target as the client sent it, which is the one that limits see. With the feature `axum`,
    /// it is axum's `OriginalUri` where there is one; else it is the same as [`uri`](Self::uri).
    pub fn target(self) -> &'r Uri {
        #[cfg(feature = "axum")]
        if let Some(original) = self.extension::<axum::extract::OriginalUri>() {
            return &original.0;
        }
        self.uri
    }

    /// All headers. Whoever wants to know who asks is better served by [`header`](Self::header).
    pub fn headers(self) -> &'r HeaderMap {
        self.headers
    }

    /// The value of a header that was sent once, is not empty and is text; whoever sends it twice
    /// has not said who they are.
    pub fn header(self, name: &str) -> Option<&'r str> {
        let mut values = self.headers.get_all(name).into_iter();
        let value = std::str::from_utf8(values.next()?.as_bytes()).ok()?;
        (!value.is_empty() && values.next().is_none()).then_some(value)
    }

    /// What an earlier layer has noted on the request, such as who was authenticated.
    pub fn extension<T: Any + Send + Sync>(self) -> Option<&'r T> {
        self.extensions.get()
    }
}

// By hand, because headers hold secrets.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", self.method)
            .field("path", &self.uri.path())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(values: &[&'static str]) -> Option<String> {
        let mut request = Request::new(());
        for value in values {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            request.headers_mut().append("x-user", value);
        }
        RequestHead::of(&request).header("x-user").map(String::from)
    }

    #[test]
    fn a_header_counts_if_it_was_sent_once_and_is_text() {
        assert_eq!(header(&["ann"]).as_deref(), Some("ann"));
        assert_eq!(header(&["Jürgen"]).as_deref(), Some("Jürgen"));
        for bad in [&[][..], &[""], &["ann", "ann"], &["ann", ""]] {
            assert_eq!(header(bad), None, "{bad:?}");
        }
        let mut request = Request::new(());
        let latin1 = http::HeaderValue::from_bytes(b"J\xfcrgen").unwrap();
        request.headers_mut().insert("x-user", latin1);
        assert_eq!(RequestHead::of(&request).header("x-user"), None);
    }

    #[test]
    fn what_is_printed_of_it_holds_no_secret() {
        let request = Request::get("/a?token=s3cret").header("authorization", "s3cret");
        let request = request.body(()).unwrap();
        let printed = format!("{:?}", RequestHead::of(&request));
        assert!(
            printed.contains("/a") && !printed.contains("s3cret"),
            "{printed}"
        );
    }
}
