//! TLS, certificates and tokens between Envoy and Tidegate.

use crate::kit::{Folder, Site, SiteOptions};
use std::path::Path;
use tidegate_testkit::redis::Certificates;

const ANN: [&str; 1] = ["x-user: ann"];

/// Header that Envoy sends with every call if the listener requires a token.
const TOKEN: &str = "[{ key: authorization, value: Bearer hunter2 }]";

/// Returns a listener with TLS; `more` adds settings of its clients.
fn listener(certificates: &Certificates, tls: &str, more: &str) -> String {
    // Any certificate of the authority works.
    let (cert, key) = (certificates.client_certificate(), certificates.client_key());
    let (cert, key) = (cert.display(), key.display());
    let tls = format!("tls: {{ cert: '{cert}', key: '{key}'{tls} }}");
    format!("listen: {{ grpc: {{ address: '127.0.0.1:0', {tls}{more} }} }}")
}

/// Returns Envoy's TLS settings: it trusts this authority, and presents `shown`.
fn trusting(authority: &Path, shown: &str) -> String {
    let context =
        "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext";
    let authority = authority.display();
    format!(
        "{{ name: tls, typed_config: {{ '@type': {context}, sni: localhost, common_tls_context: {{ \
         {shown}validation_context: {{ trusted_ca: {{ filename: '{authority}' }}, \
         match_typed_subject_alt_names: [{{ san_type: DNS, matcher: {{ exact: localhost }} }}] }} }} }} }}"
    )
}

/// Three requests pass and the fourth is refused, so Tidegate decided.
fn is_limited(site: &Site) {
    for status in [200, 200, 200, 429] {
        let reply = site.ask("GET /", &ANN);
        assert_eq!(reply.status, status, "{reply:?}");
    }
    assert_eq!((site.counted("ok"), site.counted("over_limit")), (3, 1));
}

/// Envoy gets no response, and refuses all requests.
fn is_closed(site: &Site) {
    let reply = site.ask("GET /", &ANN);
    assert_eq!((reply.status, reply.body.as_str()), (500, ""), "{reply:?}");
    assert_eq!(site.counted("error"), 1);
    assert_eq!(site.application.asked(), [""; 0]);
    assert_eq!(site.left("user", "ann"), 3, "nothing was charged");
}

#[test]
fn a_token_is_sent_over_tls_and_required() {
    let (certificates, folder) = (Certificates::make(), Folder::make());
    folder.write("token", "hunter2\n");
    let token = folder.path().join("token");
    let token = format!(", token_file: '{}'", token.display());
    let wanted = |metadata| SiteOptions {
        settings: listener(&certificates, "", &token),
        transport: trusting(&certificates.authority(), ""),
        metadata,
        ..SiteOptions::default()
    };
    let Some(site) = Site::open(&wanted(TOKEN)) else {
        return;
    };
    is_limited(&site);
    for metadata in ["[]", "[{ key: authorization, value: Bearer hunter3 }]"] {
        is_closed(&Site::open(&wanted(metadata)).unwrap());
    }
}

#[test]
fn a_listener_that_wants_certificates_answers_an_envoy_that_has_one() {
    let certificates = Certificates::make();
    let authority = certificates.authority();
    let shown = format!(
        "tls_certificates: [{{ certificate_chain: {{ filename: '{}' }}, private_key: {{ filename: '{}' }} }}], ",
        certificates.client_certificate().display(),
        certificates.client_key().display()
    );
    let wanted = |shown: &str| SiteOptions {
        settings: listener(
            &certificates,
            &format!(", client_ca: '{}'", authority.display()),
            "",
        ),
        transport: trusting(&authority, shown),
        ..SiteOptions::default()
    };
    let Some(site) = Site::open(&wanted(&shown)) else {
        return;
    };
    is_limited(&site);
    is_closed(&Site::open(&wanted("")).unwrap());
}

#[test]
fn an_envoy_that_trusts_another_authority_sends_no_request() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let wanted = SiteOptions {
        settings: listener(&certificates, "", ""),
        transport: trusting(&others.authority(), ""),
        ..SiteOptions::default()
    };
    if let Some(site) = Site::open(&wanted) {
        is_closed(&site);
    }
}
