//! TLS of a door: certificates from PEM files, optionally for callers as well.

use std::path::Path;
use std::sync::Arc;
use tidegate_policy::admin::Sha256;
use tidegate_policy::config::Tls;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

const HTTP2: &[u8] = b"h2";

/// The acceptor for these files, or what is wrong with them. Only TLS 1.2 and 1.3 are spoken, and
/// within it only the protocols of `alpn`, or whatever the caller likes where there are none.
pub(super) fn acceptor(tls: &Tls, alpn: &[&[u8]]) -> Result<TlsAcceptor, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match &tls.client_ca {
        Some(path) => config.with_client_cert_verifier(verifier(path, provider)?),
        None => config.with_no_client_auth(),
    };
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| unreadable(&tls.key, "private key", &error))?;
    let mut config = config
        .with_single_cert(certificates(&tls.cert)?, key)
        .map_err(|error| {
            format!(
                "`{}` and `{}` do not go together: {error}",
                tls.cert, tls.key
            )
        })?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Whether it was agreed to speak HTTP/2.
pub(super) fn is_http2<I>(stream: &TlsStream<I>) -> bool {
    let (_, connection) = stream.get_ref();
    connection.alpn_protocol() == Some(HTTP2)
}

/// The hash of the certificate that the caller has shown, if any.
pub(super) fn certificate<I>(stream: &TlsStream<I>) -> Option<Sha256> {
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates()?.first()?;
    Some(Sha256::of(shown))
}

/// Lets in only callers whose certificate one of those in `path` signed.
fn verifier(
    path: &str,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn tokio_rustls::rustls::server::danger::ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("`{path}` holds what cannot sign: {error}"))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("`{path}` cannot be used for callers: {error}"))
}

/// The certificates in a PEM file; at least one.
fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(Path::new(path)).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| unreadable(path, "certificate", &error))?;
    if certificates.is_empty() {
        return Err(format!("`{path}` holds no certificate in PEM"));
    }
    Ok(certificates)
}

fn unreadable(path: &str, what: &str, error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => format!("`{path}` holds no {what} in PEM"),
        PemError::Io(error) => format!("`{path}` cannot be read: {error}"),
        error => format!("`{path}` is not PEM with a {what}: {error}"),
    }
}
