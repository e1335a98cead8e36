//! What the application knows of a request better than its head tells.

use crate::RequestHead;
use http::Uri;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_http::question::HttpQuestion;

type Text = dyn for<'r> Fn(RequestHead<'r>) -> Option<Cow<'r, str>> + Send + Sync;
type Number = dyn Fn(RequestHead<'_>) -> u64 + Send + Sync;
type UriExtractor = dyn for<'r> Fn(RequestHead<'r>) -> Option<&'r Uri> + Send + Sync;
type AddressFn = dyn Fn(RequestHead<'_>) -> Option<IpAddr> + Send + Sync;

/// What the application tells of a request, each part by a function of its own.
///
/// Functions and not type parameters: the call through a pointer is nothing beside a decision, and
/// the layer's type stays one that people can write down.
#[derive(Clone, Default)]
pub(crate) struct Extractors {
    pub(crate) user: Option<Arc<Text>>,
    pub(crate) api_key: Option<Arc<Text>>,
    pub(crate) route: Option<Arc<Text>>,
    pub(crate) attributes: Vec<(Arc<str>, Arc<Text>)>,
    pub(crate) cost: Option<Arc<Number>>,
    pub(crate) target: Option<Arc<UriExtractor>>,
    /// Alone tells the peer, if it is there.
    pub(crate) peer: Option<Arc<AddressFn>>,
}

impl Extractors {
    /// What the client asked for.
    pub(crate) fn target<'r>(&self, head: RequestHead<'r>) -> &'r Uri {
        let told = self.target.as_ref().and_then(|target| target(head));
        told.unwrap_or_else(|| head.target())
    }

    /// Puts what the application tells of the request of `head` over what was found in it.
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

/// The route, as far as somebody noted it on the request.
#[cfg(feature = "axum")]
fn noted_route(head: RequestHead<'_>) -> Option<&str> {
    let path = head.extension::<axum::extract::MatchedPath>()?;
    Some(path.as_str())
}

#[cfg(not(feature = "axum"))]
fn noted_route(_: RequestHead<'_>) -> Option<&str> {
    None
}
