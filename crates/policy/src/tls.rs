//! TLS towards servers that Tidegate calls: Redis, upstreams, sources of configuration and plans.

use crate::text::Secret;

/// The TLS settings of a client. The contents of PEM files are read together with the configuration and
/// never printed: a file of certificates may also contain the private key.
///
/// ```
/// use tidegate_policy::tls::ClientTls;
///
/// // The system's authorities, the host of the URL, and no certificate.
/// let tls = ClientTls::default();
/// assert!(tls.ca.is_none() && tls.server_name.is_none() && tls.identity.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// The certificate authorities of the server's certificate, in PEM. Default: those of the system.
    pub ca: Option<Secret>,
    /// The name in the server's certificate and in SNI. Default: the host that is called.
    pub server_name: Option<String>,
    /// The client certificate and its private key, for servers that require one.
    pub identity: Option<ClientCertificate>,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate chain.
    pub cert: Secret,
    /// Its private key.
    pub key: Secret,
}
