//! The query of `/v1/auth`: `deny=403`, and no other parameter.
//!
//! nginx's `auth_request` knows 401 and 403 only, so an operator may have refusals sent as 403. The
//! request for this must come from the operator: Caddy appends the client's own query to the one of the
//! auth request.

use tidegate_http::question::{ForwardedRequest, UriBy};

const DENY: &str = "deny=403";

/// Returns true if the operator asks, in `query`, for refusals as 403. `told` is the request to decide.
pub(super) fn is_asked(query: Option<&str>, told: &ForwardedRequest<'_>) -> bool {
    let query = query.unwrap_or_default();
    if parameters(query).next() != Some(DENY) {
        return false;
    }
    // Only proxies that send the target in `X-Forwarded-Uri` append the client's query.
    if told.uri_by != Some(UriBy::XForwarded) {
        return true;
    }
    let clients = told.query().unwrap_or_default();
    if !parameters(clients).any(|parameter| parameter == DENY) {
        return true;
    }
    // The client's query has it too. The first one is the operator's only if the client's whole query
    // follows it.
    let after = query.strip_prefix(DENY).and_then(|it| it.strip_prefix('&'));
    after == Some(clients)
}

/// Splits a query into parameters. Old servers separate them by semicolons.
fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split(['&', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: Option<&str>, by: UriBy, uri: &str) -> bool {
        let forwarded = ForwardedRequest {
            uri: Some(uri),
            uri_by: Some(by),
            ..ForwardedRequest::default()
        };
        is_asked(query, &forwarded)
    }

    #[test]
    fn the_first_query_parameter_selects_the_deny_status() {
        for by in [UriBy::XForwarded, UriBy::XOriginal] {
            for (query, uri) in [
                ("deny=403", "/a"),
                ("deny=403", "/a?b"),
                ("deny=403&b", "/a?b"),
                ("deny=403&deny=403", "/a?deny=403"),
                ("deny=403&x&deny=403", "/a?x&deny=403"),
            ] {
                assert!(check(Some(query), by, uri), "{query} {uri}");
            }
            for query in [
                "",
                "deny=404",
                "deny",
                "DENY=403",
                "x&deny=403",
                "deny=4033",
            ] {
                assert!(!check(Some(query), by, "/a"), "{query}");
            }
            assert!(!check(None, by, "/a?deny=403"));
        }
        assert!(is_asked(Some("deny=403"), &ForwardedRequest::default()));
    }

    #[test]
    fn a_clients_query_does_not_select_the_deny_status() {
        for (query, uri) in [
            ("deny=403", "/a?deny=403"),
            ("deny=403&x", "/a?deny=403&x"),
            ("deny=403&deny=403", "/a?deny=403&deny=403"),
            // A proxy that drops parameters that it cannot parse sends this.
            ("deny=403", "/a?%zz&deny=403"),
            ("deny=403&x=1", "/a?x=1;deny=403"),
        ] {
            assert!(!check(Some(query), UriBy::XForwarded, uri), "{query} {uri}");
        }
    }

    #[test]
    fn an_nginx_client_cannot_undo_the_deny_status() {
        assert!(check(Some("deny=403"), UriBy::XOriginal, "/a?deny=403"));
    }
}
