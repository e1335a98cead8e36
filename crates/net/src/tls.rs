//! TLS of a listener: certificates from PEM files, optionally for callers as well, read again when they
//! change.

use super::expiry::expiry;
use crate::file_stamp::FileStamp;
use arc_swap::ArcSwap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tidegate_policy::listen::Tls;
use tidegate_policy::text::Sha256;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

const HTTP2: &[u8] = b"h2";

/// The most bytes of a file.
const BYTES_MAX: u64 = 1 << 20;

/// The TLS of a listener. A handshake uses the files as they were last read without an error.
pub struct ListenerTls {
    files: Tls,
    alpn: &'static [&'static [u8]],
    current: ArcSwap<LoadedTls>,
    /// The stamps of the files before they were read for the first time.
    first_seen: Vec<FileStamp>,
}

/// The state from the last successful read.
struct LoadedTls {
    config: Arc<ServerConfig>,
    /// The expiry of the certificate, in RFC 3339.
    expiry: Option<String>,
    /// Hashes of the files.
    files: Vec<Sha256>,
}

impl ListenerTls {
    /// Reads `files`. Returns an error message if they are invalid. Only TLS 1.2 and 1.3 are used, and within
    /// it only the protocols of `alpn`, or any protocol if there are none.
    ///
    /// # Errors
    ///
    /// The path and the reason, if a file is missing, larger than 1 MiB or no PEM, or if key and certificate do not
    /// match.
    pub fn read(files: &Tls, alpn: &'static [&'static [u8]]) -> Result<Self, String> {
        // Stamp first: any later change makes a difference.
        let first_seen = sights(files);
        Ok(Self {
            current: ArcSwap::from_pointee(LoadedTls::read(files, alpn)?),
            files: files.clone(),
            alpn,
            first_seen,
        })
    }

    /// Reads the files again, and returns true if their content has changed: the next handshake uses it. An
    /// error changes nothing.
    ///
    /// Connections that are open keep the certificate that they began with.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read). Handshakes continue with the files as they were read before.
    pub fn read_again(&self) -> Result<bool, String> {
        let read = LoadedTls::read(&self.files, self.alpn)?;
        let is_new = read.files != self.current.load().files;
        if is_new {
            self.current.store(Arc::new(read));
        }
        Ok(is_new)
    }

    /// Returns the expiry of the certificate, in RFC 3339.
    pub fn expiry(&self) -> Option<String> {
        self.current.load().expiry.clone()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.load().config))
    }

    /// Returns the stamps of the files before they were read for the first time.
    pub fn first_seen(&self) -> &[FileStamp] {
        &self.first_seen
    }

    /// Returns the present stamps of the files.
    pub fn sights(&self) -> Vec<FileStamp> {
        sights(&self.files)
    }
}

fn sights(files: &Tls) -> Vec<FileStamp> {
    let paths = [&files.cert, &files.key]
        .into_iter()
        .chain(&files.client_ca);
    paths.map(|path| FileStamp::of(Path::new(path))).collect()
}

impl LoadedTls {
    fn read(tls: &Tls, alpn: &[&[u8]]) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut files = Vec::new();
        let mut text = |path: &str| {
            let text = tidegate_files::read_file(Path::new(path), BYTES_MAX)
                .map_err(|error| cannot_read(path, &error))?;
            files.push(Sha256::of(&text));
            Ok::<_, String>(text)
        };
        let config = match &tls.client_ca {
            Some(path) => config.with_client_cert_verifier(verifier(path, &text(path)?, provider)?),
            None => config.with_no_client_auth(),
        };
        let key = PrivateKeyDer::from_pem_slice(&text(&tls.key)?)
            .map_err(|error| unreadable(&tls.key, "private key", &error))?;
        let chain = certificates(&tls.cert, &text(&tls.cert)?)?;
        let expiry = chain.first().and_then(|certificate| expiry(certificate));
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| format!("`{}` and `{}` do not match: {error}", tls.cert, tls.key))?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Self {
            config: Arc::new(config),
            expiry,
            files,
        })
    }
}

/// Returns true if HTTP/2 was negotiated.
pub fn is_http2<I>(stream: &TlsStream<I>) -> bool {
    let (_, connection) = stream.get_ref();
    connection.alpn_protocol() == Some(HTTP2)
}

/// Returns the hash of the caller's certificate, if any.
pub fn certificate<I>(stream: &TlsStream<I>) -> Option<Sha256> {
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates()?.first()?;
    Some(Sha256::of(shown))
}

/// Accepts only callers whose certificate is signed by one of those in `path`.
fn verifier(
    path: &str,
    text: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn tokio_rustls::rustls::server::danger::ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, text)? {
        roots
            .add(certificate)
            .map_err(|error| format!("`{path}` has an invalid certificate: {error}"))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("`{path}` cannot be used for client certificates: {error}"))
}

/// Returns the certificates in a PEM file; at least one.
fn certificates(path: &str, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let certificates = read.map_err(|error| unreadable(path, "certificate", &error))?;
    if certificates.is_empty() {
        return Err(format!("`{path}` holds no certificate in PEM"));
    }
    Ok(certificates)
}

fn unreadable(path: &str, what: &str, error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => format!("`{path}` holds no {what} in PEM"),
        PemError::Io(error) => cannot_read(path, error),
        error => format!("`{path}` is not PEM with a {what}: {error}"),
    }
}

fn cannot_read(path: &str, error: &io::Error) -> String {
    format!("`{path}` cannot be read: {error}")
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerTls")
            .field("files", &self.files)
            .field("expiry", &self.expiry())
            .finish_non_exhaustive()
    }
}
