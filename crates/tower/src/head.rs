//! The head of a request, for the functions of the application.

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
    /// Returns the head of `request`.
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

    /// Returns the method.
    pub fn method(self) -> &'r Method {
        self.method
    }

    /// Returns the target as the service behind the layer sees it. Inside a
    /// [nested](https://docs.rs/axum/0.8/axum/struct.Router.html#method.nest) axum router it lacks the prefix
    /// of the router; [`target`](Self::target) is complete.
    pub fn uri(self) -> &'r Uri {
        self.uri
    }

    /// Returns the target as the client sent it, which limits use. With the feature `axum`, this is axum's
    /// `OriginalUri` if there is one; otherwise the same as [`uri`](Self::uri).
    pub fn target(self) -> &'r Uri {
        #[cfg(feature = "axum")]
        if let Some(original) = self.extension::<axum::extract::OriginalUri>() {
            return &original.0;
        }
        self.uri
    }

    /// Returns all headers. To identify a client, use [`header`](Self::header), which rejects duplicates.
    pub fn headers(self) -> &'r HeaderMap {
        self.headers
    }

    /// Returns the value of a header that was sent once, is not empty and is UTF-8. Returns `None` for a
    /// duplicated header: a proxy and the application might each read another one of the values.
    pub fn header(self, name: &str) -> Option<&'r str> {
        let mut values = self.headers.get_all(name).into_iter();
        let value = std::str::from_utf8(values.next()?.as_bytes()).ok()?;
        (!value.is_empty() && values.next().is_none()).then_some(value)
    }

    /// Returns a value that an earlier layer has noted on the request, such as the authenticated user.
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
    fn debug_output_contains_no_secret() {
        let request = Request::get("/a?token=s3cret").header("authorization", "s3cret");
        let request = request.body(()).unwrap();
        let printed = format!("{:?}", RequestHead::of(&request));
        assert!(
            printed.contains("/a") && !printed.contains("s3cret"),
            "{printed}"
        );
    }
}
