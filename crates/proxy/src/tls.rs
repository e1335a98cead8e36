//! TLS to upstreams.

use std::sync::Arc;
use tidegate_policy::route::Http2Use;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;
use tidegate_tls::{server_verifier, system_roots};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Creates the TLS connector for an upstream. Returns an error message if the certificates are invalid. Only
/// TLS 1.2 and 1.3 are used, and every certificate is verified.
pub(crate) fn connector(tls: &ClientTls, http2: Http2Use) -> Result<TlsConnector, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match &tls.ca {
        Some(ca) => {
            let verifier = server_verifier(certificates(ca, "ca")?)
                .map_err(|error| format!("the ca has an invalid certificate: {error}"))?;
            config
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
        None => config.with_root_certificates(system_roots()),
    };
    let mut config = match &tls.identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes())
                .map_err(|error| format!("the key is not a private key in PEM: {error}"))?;
            config
                .with_client_auth_cert(certificates(&identity.cert, "cert")?, key)
                .map_err(|error| format!("cert and key do not match: {error}"))?
        }
    };
    config.alpn_protocols = match http2 {
        Http2Use::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Http2Use::Always => vec![b"h2".to_vec()],
        Http2Use::Never => vec![b"http/1.1".to_vec()],
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(pem: &Secret, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_slice_iter(pem.expose().as_bytes());
    let read: Result<Vec<_>, _> = read.collect();
    let certificates = read.map_err(|error| format!("the {what} is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("the {what} holds no certificate in PEM"));
    }
    Ok(certificates)
}
