//! Requests that are decided repeatedly.

use super::Buffers;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::Request;
use tidegate_policy::unit::KeptCost;

/// A request that is decided repeatedly, such as the messages of one connection: see
/// [`Limiter::check_repeated`](crate::Limiter::check_repeated).
///
/// Its client and its limits are those it started with. Limits are matched once; only limits whose rate comes
/// from a plan are matched each time, because plans change. Guards are evaluated each time.
///
/// It owns copies of the texts of the request and its buffers, so that deciding it again allocates little. It
/// cannot be cloned: each connection creates its own.
pub struct RepeatedRequest {
    pub(crate) rules: Arc<Rules>,
    pub(crate) kept: OwnedRequest,
    pub(crate) buffers: Buffers,
}

/// An owned [`Request`].
pub(crate) struct OwnedRequest {
    policy: Option<String>,
    ip: Option<IpAddr>,
    user: Option<String>,
    api_key: Option<String>,
    method: Option<String>,
    host: Option<String>,
    path: Option<String>,
    route: Option<String>,
    headers: Vec<(String, String)>,
    attributes: Vec<(String, String)>,
    cost: KeptCost,
}

/// Headers and attributes of a [`OwnedRequest`], in the form in which a [`Request`] borrows them.
pub(crate) struct RequestPairs<'k> {
    headers: SmallVec<[(&'k str, &'k str); 2]>,
    attributes: SmallVec<[(&'k str, &'k str); 2]>,
}

impl RepeatedRequest {
    /// Keeps `request`, which is decided by `rules` from now on. Descriptors are not kept: they belong to
    /// proxies, which send them with each request.
    ///
    /// A clone of `rules` is kept: reloads do not affect it. Create a new one to follow a reload.
    pub fn new(rules: &Arc<Rules>, request: &Request<'_>) -> Self {
        Self {
            rules: Arc::clone(rules),
            kept: OwnedRequest::of(request),
            buffers: Buffers::of_one_request(),
        }
    }

    /// Returns the rules that it is decided by.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Returns the name of its policy; `None` means the first.
    pub fn policy(&self) -> Option<&str> {
        self.kept.policy.as_deref()
    }

    /// Returns the parts of the request that its decisions are counted by: its policy and its cost. See
    /// [`Decision::limit_hits`](crate::Decision::limit_hits).
    pub fn counted(&self) -> Request<'_> {
        Request {
            policy: self.policy(),
            cost: self.kept.cost.cost(),
            ..Request::new()
        }
    }
}

// Formats the request, which hides secrets.
impl fmt::Debug for RepeatedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.kept.pairs();
        self.kept.request(&pairs).fmt(f)
    }
}

impl OwnedRequest {
    fn of(request: &Request<'_>) -> Self {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let texts = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs.map(|(a, b)| ((*a).into(), (*b).into())).collect()
        };
        Self {
            policy: text(request.policy),
            ip: request.ip,
            user: text(request.user),
            api_key: text(request.api_key),
            method: text(request.method),
            host: text(request.host),
            path: text(request.path),
            route: text(request.route),
            headers: texts(request.headers),
            attributes: texts(request.attributes),
            cost: KeptCost::from(request.cost),
        }
    }

    pub(crate) fn pairs(&self) -> RequestPairs<'_> {
        RequestPairs {
            headers: borrow(&self.headers),
            attributes: borrow(&self.attributes),
        }
    }

    /// Returns the request; `pairs` must come from [`pairs`](Self::pairs).
    pub(crate) fn request<'r, 'k: 'r>(&'k self, pairs: &'r RequestPairs<'k>) -> Request<'r> {
        Request {
            policy: self.policy.as_deref(),
            ip: self.ip,
            user: self.user.as_deref(),
            api_key: self.api_key.as_deref(),
            method: self.method.as_deref(),
            host: self.host.as_deref(),
            path: self.path.as_deref(),
            route: self.route.as_deref(),
            headers: &pairs.headers,
            attributes: &pairs.attributes,
            cost: self.cost.cost(),
            descriptors: &[],
            permit: None,
        }
    }
}

fn borrow(pairs: &[(String, String)]) -> SmallVec<[(&str, &str); 2]> {
    let pairs = pairs.iter();
    pairs.map(|(a, b)| (a.as_str(), b.as_str())).collect()
}
