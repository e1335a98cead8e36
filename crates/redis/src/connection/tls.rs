//! What TLS trusts and shows.

use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::TlsSettings;
use crate::trust::server_verifier;
use std::sync::Arc;
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
                .map_err(|error| bad(format!("the CA holds a certificate of no use: {error}")))?;
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

fn system_roots() -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    // Single certificates that cannot be read are the system's business, as long as some can.
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err(bad(
            "this system has no certificate authorities: give the CA that signed Redis' certificate",
        ));
    }
    Ok(roots)
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(bad(format!("{what} holds no PEM certificate"))),
        Err(error) => Err(bad(format!("{what} cannot be read: {error}"))),
    }
}

fn bad(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Settings, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_told_from_certificates_and_not_repeated() {
        let error = client_config(&TlsSettings::new().ca("hunter2")).unwrap_err();
        assert_eq!(error.to_string(), "the CA holds no PEM certificate");
        assert_eq!(error.kind(), ConnectErrorKind::Settings);
    }
}
