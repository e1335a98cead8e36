//! Authentication of callers, by a token or by a client certificate.
//!
//! Only `Authorization` and the connection itself count. Credentials that a browser adds to requests of
//! foreign pages, such as cookies, prove nothing here.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Uri};
use std::sync::Arc;
use subtle::{Choice, ConstantTimeEq};
use tidegate_config::admin::{Admin, AdminCredential, AdminRole};
use tidegate_policy::text::Sha256;

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) name: Arc<str>,
    pub(super) role: AdminRole,
}

/// The reason why a caller is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthenticationError {
    /// The caller sent no credential.
    Silent,
    /// The credential is unknown.
    Wrong,
}

/// Identifies the sender of `headers`, over a connection that presented the certificate with this hash,
/// if any.
pub(super) fn identify(
    admin: &Admin,
    headers: &HeaderMap,
    certificate: Option<&Sha256>,
) -> Result<Caller, AuthenticationError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (None, _) => {
            let known = certificate.and_then(|hash| find(&admin.certificates, hash));
            known.ok_or(AuthenticationError::Silent)
        }
        (Some(value), None) => {
            let token = bearer(value.as_bytes()).ok_or(AuthenticationError::Wrong)?;
            find(&admin.tokens, &Sha256::of(token)).ok_or(AuthenticationError::Wrong)
        }
        // A duplicated header is ambiguous: two parsers could read it in two ways.
        (Some(_), Some(_)) => Err(AuthenticationError::Wrong),
    }
}

/// Returns the token in a header's value. The scheme is case-insensitive.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// Returns the caller with this hash. Compares all hashes completely, so that the duration reveals
/// nothing.
fn find(known: &[AdminCredential], hash: &Sha256) -> Option<Caller> {
    let mut found = None;
    for one in known {
        let is_it: Choice = one.hash.as_bytes().ct_eq(hash.as_bytes());
        if bool::from(is_it) {
            found = Some(one);
        }
    }
    found.map(|one| Caller {
        name: one.name.as_str().into(),
        role: one.role,
    })
}

/// Returns true if a page of another origin sent the request through a browser.
///
/// The target host is in the URI with HTTP/2, and in `Host` with earlier versions.
pub(super) fn is_foreign(headers: &HeaderMap, uri: &Uri) -> bool {
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let authority = origin.to_str().ok().and_then(|it| it.split_once("://"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or(host);
    match (authority, host) {
        (Some((_, authority)), Some(host)) => !authority.eq_ignore_ascii_case(host),
        // `null`, and any other invalid origin.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn admin() -> Admin {
        let known = |name: &str, role, of: &str| AdminCredential {
            name: name.to_owned(),
            role,
            hash: Sha256::of(of.as_bytes()),
        };
        Admin {
            tokens: vec![
                known("ci", AdminRole::Operate, "one"),
                known("ann", AdminRole::Admin, "two"),
            ],
            certificates: vec![known("bob", AdminRole::Read, "certificate")],
            audit: tidegate_config::admin::Audit::default(),
        }
    }

    fn headers(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn name(values: &[(&'static str, &'static str)], certificate: Option<&str>) -> String {
        let certificate = certificate.map(|text| Sha256::of(text.as_bytes()));
        let found = identify(&admin(), &headers(values), certificate.as_ref());
        found.map_or_else(|why| format!("{why:?}"), |it| it.name.to_string())
    }

    #[test]
    fn callers_are_identified_only_by_a_token_or_a_certificate() {
        let token = |value| [("authorization", value)];
        assert_eq!(name(&token("Bearer one"), None), "ci");
        assert_eq!(name(&token("bearer two"), None), "ann");
        assert_eq!(name(&[], Some("certificate")), "bob");
        assert_eq!(name(&[], Some("another")), "Silent");
        assert_eq!(name(&[], None), "Silent");
        assert_eq!(name(&[("cookie", "token=one")], None), "Silent");
        for wrong in [
            "Bearer three",
            "Bearer ",
            "Bearer  one",
            "Basic one",
            "one",
            "",
        ] {
            assert_eq!(name(&token(wrong), None), "Wrong", "{wrong}");
        }
        // A caller that sends a token is identified by it alone.
        assert_eq!(name(&token("Bearer x"), Some("certificate")), "Wrong");
        let twice = [
            ("authorization", "Bearer one"),
            ("authorization", "Bearer one"),
        ];
        assert_eq!(name(&twice, None), "Wrong");
    }

    #[test]
    fn cross_origin_pages_are_detected_by_browser_headers() {
        for (values, expected) in [
            (&[][..], false),
            (&[("host", "a:1"), ("origin", "http://a:1")], false),
            (&[("host", "a:1"), ("origin", "http://b:1")], true),
            (&[("host", "a:1"), ("origin", "http://a:2")], true),
            (&[("host", "a:1"), ("origin", "null")], true),
            (&[("host", "a:1"), ("sec-fetch-site", "cross-site")], true),
            (&[("host", "a:1"), ("sec-fetch-site", "same-origin")], false),
            (&[("origin", "http://a")], true),
        ] {
            let path = Uri::from_static("/admin/v1/status");
            assert_eq!(is_foreign(&headers(values), &path), expected, "{values:?}");
        }
    }

    #[test]
    fn with_http2_every_page_was_cross_origin_for_lack_of_host() {
        let uri = Uri::from_static("https://a:1/admin/v1/status");
        let own = headers(&[("origin", "https://a:1")]);
        assert!(!is_foreign(&own, &uri));
        let other = headers(&[("origin", "https://b:1"), ("host", "b:1")]);
        assert!(is_foreign(&other, &uri));
    }
}
