//! Trust in the certificates of servers, for clients of TLS.
//!
//! Connections to Redis and connections to upstreams trust alike: [`server_verifier`] verifies against
//! configured authorities, [`system_roots`] are those of the operating system.

mod trust;

use tokio_rustls::rustls::RootCertStore;

pub use trust::server_verifier;

/// Returns the authorities of the operating system; none if it has none that can be used.
///
/// Reads them from disk. A certificate that cannot be parsed or used is left out: it signs nothing.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
