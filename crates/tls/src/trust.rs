//! Verification of server certificates, for clients with configured authorities.

use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Returns a verifier that trusts these certificates and no others: servers whose certificate one of
/// them signed, and servers whose certificate is one of them.
///
/// The second is how self-signed certificates are used. `openssl req -x509` marks them as authorities,
/// and `webpki` refuses an authority as the certificate of a server. Here it is accepted if it is the
/// same, byte for byte, is valid now and for the name, and if the server has its key.
///
/// # Errors
///
/// A certificate cannot be used as an authority, or there is none.
pub fn server_verifier(
    authorities: Vec<CertificateDer<'static>>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        let added = roots.add(authority.clone());
        added.map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(ring::default_provider());
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let webpki = webpki.map_err(|error| error.to_string())?;
    Ok(Arc::new(Verifier {
        webpki,
        authorities,
    }))
}

/// A verifier that accepts signed certificates, and those that are trusted themselves.
#[derive(Debug)]
struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // It checks the time before this: one that has expired ends as such.
            Err(error) if is_authority(&error) && self.authorities.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Returns true if the only fault is that the certificate is marked as an authority. `rustls` passes
/// this error on by its text alone.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return false;
    };
    other.0.to_string() == "CaUsedAsEndEntity"
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    fn certificate(is_ca: IsCa, not_after: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["store.test".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(not_after, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn authority(not_after: i32) -> CertificateDer<'static> {
        certificate(IsCa::Ca(BasicConstraints::Unconstrained), not_after)
    }

    fn verify(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &'static str,
    ) -> Result<(), Error> {
        let verifier = server_verifier(vec![trusted.clone()]).unwrap();
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_700_000_000));
        let result = verifier.verify_server_cert(shown, &[], &name, &[], now);
        result.map(drop)
    }

    /// As `openssl req -x509` makes them.
    #[test]
    fn a_self_signed_certificate_was_not_accepted_as_its_own_authority() {
        let own = authority(2030);
        verify(&own, &own, "store.test").unwrap();
        let plain = certificate(IsCa::NoCa, 2030);
        verify(&plain, &plain, "store.test").unwrap();
        let explicit = certificate(IsCa::ExplicitNoCa, 2030);
        verify(&explicit, &explicit, "store.test").unwrap();
    }

    #[test]
    fn a_self_signed_certificate_must_match_exactly() {
        let error = verify(&authority(2030), &authority(2030), "store.test").unwrap_err();
        assert!(matches!(error, Error::InvalidCertificate(_)), "{error}");
    }

    #[test]
    fn a_self_signed_certificate_must_be_valid_for_the_name() {
        let own = authority(2030);
        let error = verify(&own, &own, "other.test").unwrap_err();
        let is_name = matches!(
            error,
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
        );
        assert!(is_name, "{error}");
    }

    #[test]
    fn a_self_signed_certificate_must_be_valid_now() {
        let own = authority(2021);
        let error = verify(&own, &own, "store.test").unwrap_err();
        let is_expired = matches!(
            error,
            Error::InvalidCertificate(CertificateError::ExpiredContext { .. })
        );
        assert!(is_expired, "{error}");
    }
}
