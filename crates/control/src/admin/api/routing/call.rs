//! A call as its handler sees it: authenticated, authorized, and parsed.

use super::route::AdminRoute;
use crate::admin::api::caller::Caller;
use crate::admin::api::etag::ExpectedVersions;
use crate::admin::api::query::Query;
use serde_json::Value;
use std::net::IpAddr;

/// An admin API call.
#[derive(Debug)]
pub(in crate::admin::api) struct AdminCall {
    pub(in crate::admin::api) route: &'static AdminRoute,
    pub(in crate::admin::api) caller: Caller,
    pub(in crate::admin::api) peer: IpAddr,
    pub(in crate::admin::api) params: Vec<(&'static str, String)>,
    pub(in crate::admin::api) query: Query,
    /// The body, before its route reads it as the type that it has; `null` if the route has none.
    pub(in crate::admin::api) body: Value,
    /// The version that the caller must have seen, if the route requires one.
    pub(in crate::admin::api) expected: ExpectedVersions,
}

impl AdminCall {
    /// Returns the value of a path parameter.
    pub(in crate::admin::api) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(other, _)| *other == name);
        found.map_or("", |(_, text)| text)
    }
}
