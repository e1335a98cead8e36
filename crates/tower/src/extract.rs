//! Functions of the application that read requests.

use crate::RequestHead;
use http::Uri;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::CostMap;
use tidegate_http::question::HttpQuestion;

type Text = dyn for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync;
type CostFn = dyn Fn(RequestHead<'_>) -> CostMap<'static> + Send + Sync;
type UriExtractor = dyn for<'r> Fn(RequestHead<'r>) -> Option<&'r Uri> + Send + Sync;
type AddressFn = dyn Fn(RequestHead<'_>) -> Option<IpAddr> + Send + Sync;

/// The functions of the application, one per part of a request.
///
/// Function pointers and not type parameters: the call is negligible next to a decision, and the type of the
/// layer stays short.
#[derive(Clone, Default)]
pub(crate) struct Extractors {
    pub(crate) user: Option<Arc<Text>>,
    pub(crate) api_key: Option<Arc<Text>>,
    pub(crate) route: Option<Arc<Text>>,
    pub(crate) attributes: Vec<(Arc<str>, Arc<Text>)>,
    pub(crate) cost: Option<Arc<CostFn>>,
    pub(crate) target: Option<Arc<UriExtractor>>,
    /// Replaces all other sources of the peer address.
    pub(crate) peer: Option<Arc<AddressFn>>,
}

impl Extractors {
    /// Returns the target that the client sent.
    pub(crate) fn target<'r>(&self, head: RequestHead<'r>) -> &'r Uri {
        let extracted = self.target.as_ref().and_then(|target| target(head));
        extracted.unwrap_or_else(|| head.target())
    }

    /// Overrides the values found in the request of `head` with those of the application.
    pub(crate) fn tell<'a>(&'a self, head: RequestHead<'a>, question: &mut HttpQuestion<'a>) {
        if let Some(user) = self.user.as_ref().and_then(|user| user(head)) {
            question.user(user);
        }
        if let Some(key) = self.api_key.as_ref().and_then(|key| key(head)) {
            question.api_key(key);
        }
        let route = match &self.route {
            Some(route) => route(head),
            None => noted_route(head).map(Cow::Borrowed),
        };
        if let Some(route) = route {
            question.route(route);
        }
        for (name, value) in &self.attributes {
            if let Some(value) = value(head) {
                question.attribute(name, value);
            }
        }
        if let Some(cost) = &self.cost {
            question.cost(cost(head));
        }
    }
}

/// Returns the route that axum has noted on the request.
#[cfg(feature = "axum")]
fn noted_route(head: RequestHead<'_>) -> Option<&str> {
    let path = head.extension::<axum::extract::MatchedPath>()?;
    Some(path.as_str())
}

#[cfg(not(feature = "axum"))]
fn noted_route(_: RequestHead<'_>) -> Option<&str> {
    None
}
