//! The client of a check request: from its own fields, or derived from its headers and path.

use super::{JsonQuestion, NamedTexts};
use smallvec::SmallVec;
use tidegate::{Client, Cost, Request};
use tidegate_http::unix_seconds;
use tidegate_policy::client::{ClientIdentity, RequestFacts};

/// The headers, attributes and entries of a [`JsonQuestion`], in the form in which a [`Request`] borrows
/// them, and the client's identity.
#[derive(Default)]
pub struct QuestionPairs<'q> {
    pub(super) headers: SmallVec<[(&'q str, &'q str); 4]>,
    pub(super) attributes: SmallVec<[(&'q str, &'q str); 4]>,
    pub(super) user: Option<&'q str>,
    pub(super) api_key: Option<&'q str>,
    pub(super) cost: Cost<'q>,
    /// The entries of all descriptors.
    pub(super) entries: Vec<(&'q str, &'q str)>,
}

impl JsonQuestion<'_> {
    /// Returns the identity that `client` derives from the headers and the path, as a frontend would from a
    /// request; `None` if it can derive nothing. Callers of the check API may claim anything, so all headers
    /// are trusted. The address is always the one in the check request.
    #[inline]
    pub fn learn<'q>(
        &'q self,
        client: &'q Client,
        now: &'q dyn Fn() -> u64,
    ) -> Option<ClientIdentity<'q>> {
        if !client.learns_from(!self.headers.is_empty(), self.path.is_some()) {
            return None;
        }
        Some(client.identify_reported(&RequestFacts {
            peer: None,
            headers: self.headers.as_slice(),
            path: self.path.as_deref(),
            now,
        }))
    }

    /// Calls `ask` with the request for the limiter: from the fields of the check request, and from the
    /// identity that `client` [derives](Self::learn) if a field is missing. Passes also the reason why its
    /// token was rejected, if it was.
    #[inline]
    pub fn identified<T>(
        &self,
        client: &Client,
        ask: impl FnOnce(&Request<'_>, Option<&'static str>) -> T,
    ) -> T {
        let learnt = self.learn(client, &unix_seconds);
        let pairs = self.pairs_with(learnt.as_ref());
        let descriptors = self.descriptors(&pairs);
        let refused = learnt.as_ref().and_then(|learnt| learnt.token_refused);
        ask(&self.request(&pairs).descriptors(&descriptors), refused)
    }

    /// Returns the check request's own pairs, for [`request`](Self::request).
    #[inline]
    pub fn pairs(&self) -> QuestionPairs<'_> {
        QuestionPairs {
            headers: borrow(&self.headers),
            attributes: borrow(&self.attributes),
            user: self.user.as_deref(),
            api_key: self.api_key.as_deref(),
            cost: self.cost.as_ref().map_or(Cost::ONE_REQUEST, Cost::from),
            entries: self.described.entries(),
        }
    }

    /// Returns the check request's own pairs, completed with the [derived](Self::learn) identity.
    #[inline]
    pub fn pairs_with<'q>(&'q self, learnt: Option<&'q ClientIdentity<'_>>) -> QuestionPairs<'q> {
        let mut pairs = self.pairs();
        if let Some(learnt) = learnt {
            pairs.add(learnt);
            if self.cost.is_none() {
                pairs.cost = learnt.cost.cost();
            }
        }
        pairs
    }
}

impl<'q> QuestionPairs<'q> {
    /// Adds the fields that are absent or empty.
    fn add(&mut self, learnt: &'q ClientIdentity<'_>) {
        let is_set = |text: &&str| !text.is_empty();
        self.user = self.user.filter(is_set).or(learnt.user.as_deref());
        self.api_key = self.api_key.filter(is_set).or(learnt.api_key.as_deref());
        let is_learnt = |name: &str| learnt.attributes.iter().any(|(it, _)| *it == name);
        self.attributes
            .retain(|(name, value)| !value.is_empty() || !is_learnt(name));
        let own = self.attributes.len();
        for (name, value) in &learnt.attributes {
            // Compare with the own attributes only: guards must see each value of a repeated attribute.
            let mut known = self.attributes.iter().take(own);
            if !known.any(|(known, _)| known == name) {
                self.attributes.push((name, value));
            }
        }
    }
}

// Implemented by hand: it holds secrets.
impl std::fmt::Debug for QuestionPairs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pairs").finish_non_exhaustive()
    }
}

#[inline]
fn borrow<'q>(texts: &'q NamedTexts<'_>) -> SmallVec<[(&'q str, &'q str); 4]> {
    let mut pairs = SmallVec::new();
    for (name, value) in texts {
        pairs.push((&**name, &**value));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
user: { header: X-User-Id }
token: { header: X-Token }
attributes: { project: { segment: 1 }, plan: { query: plan } }
cost: { header: X-Cost, max: 10, default: 3 }
";

    fn check(text: &str, then: impl FnOnce(&Request<'_>)) {
        let client = tidegate_config::client_from_yaml(CONFIG).expect("a valid config");
        let question = JsonQuestion::read(text.as_bytes()).expect("a valid config");
        let learnt = question.learn(&client, &|| 0);
        let pairs = question.pairs_with(learnt.as_ref());
        then(&question.request(&pairs));
    }

    #[test]
    fn headers_and_path_supply_missing_fields() {
        let text = r#"{"path": "/apollo?plan=gold", "ip": "192.0.2.1",
            "headers": {"X-User-Id": "ann", "X-API-Key": "k", "X-Token": "t", "X-Cost": "7",
                "X-Forwarded-For": "198.51.100.1"}}"#;
        check(text, |request| {
            assert_eq!((request.user, request.api_key), (Some("ann"), Some("k")));
            assert_eq!(request.cost, 7);
            assert_eq!(
                request.attributes,
                [("token", "t"), ("project", "apollo"), ("plan", "gold")]
            );
            assert_eq!(request.ip, "192.0.2.1".parse().ok(), "only what it says");
        });
    }

    #[test]
    fn fields_of_the_request_override_headers_and_path() {
        let text = r#"{"path": "/apollo?plan=gold", "user": "bob", "api_key": "", "cost": 0,
            "attributes": {"plan": "free", "token": ""},
            "headers": {"X-User-Id": "ann", "X-API-Key": "k", "X-Token": "t", "X-Cost": "7"}}"#;
        check(text, |request| {
            assert_eq!((request.user, request.api_key), (Some("bob"), Some("k")));
            assert_eq!(request.cost, 0, "whoever asks may look");
            assert_eq!(
                request.attributes,
                [("plan", "free"), ("token", "t"), ("project", "apollo")]
            );
        });
    }

    #[test]
    fn the_cost_has_a_default() {
        check("{}", |request| assert_eq!(request.cost, 3));
    }

    #[test]
    fn headers_that_no_rule_uses_are_not_read() {
        let client = Client::default();
        let question =
            JsonQuestion::read(br#"{"path": "/a?b=c", "ip": "::1"}"#).expect("a valid config");
        assert!(question.learn(&client, &|| 0).is_none());
    }
}
