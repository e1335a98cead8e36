//! TLS: the trusted authorities and our certificate.

use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::TlsSettings;
use std::sync::Arc;
use tidegate_tls::server_verifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Reads certificates and keys. Names none of their contents in errors.
pub(super) fn client_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, ConnectError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(format!("TLS cannot be set up: {error}")))?;
    let builder = match &settings.ca {
        Some(pem) => {
            let verifier = server_verifier(certificates(pem, "the CA")?)
                .map_err(|error| bad(format!("the CA file has an invalid certificate: {error}")))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        }
        None => builder.with_root_certificates(system_roots()?),
    };
    let config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates(chain, "the client certificate")?;
            let key = PrivateKeyDer::from_pem_slice(key)
                .map_err(|_| bad("the key of the client certificate is not a PEM private key"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| bad(format!("the client certificate cannot be used: {error}")))?
        }
    };
    Ok(Arc::new(config))
}

/// Loads the authorities of the operating system.
fn system_roots() -> Result<RootCertStore, ConnectError> {
    let roots = tidegate_tls::system_roots();
    if roots.is_empty() {
        return Err(bad(
            "this system has no certificate authorities: set the CA of the Redis certificate",
        ));
    }
    Ok(roots)
}

/// Reads certificates. `what` names them in the error.
fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(bad(format!("{what} holds no PEM certificate"))),
        Err(error) => Err(bad(format!("{what} cannot be read: {error}"))),
    }
}

/// Returns an error of the TLS settings.
fn bad(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Settings, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificates_are_reported_without_their_content() {
        let error = client_config(&TlsSettings::new().ca("hunter2")).unwrap_err();
        assert_eq!(error.to_string(), "the CA holds no PEM certificate");
        assert_eq!(error.kind(), ConnectErrorKind::Settings);
    }
}
