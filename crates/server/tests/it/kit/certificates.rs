//! Certificates for one test, in a separate folder.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// An authority, and a server certificate that it signed. Dropping it removes the folder.
pub(crate) struct Certificates {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn make() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Relaxed);
        let name = format!("tidegate-test-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let made = Self {
            folder,
            authority: authority(),
        };
        let (cert, key) = made.sign("localhost");
        fs::write(made.path("cert.pem"), cert).unwrap();
        fs::write(made.path("key.pem"), key).unwrap();
        fs::write(made.path("ca.pem"), made.authority_pem()).unwrap();
        made
    }

    /// Returns the path of a file: `cert.pem`, `key.pem`, `ca.pem`.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// Returns a certificate for `name` and its key, in PEM.
    pub(crate) fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.authority).unwrap();
        (cert.pem(), key.serialize_pem())
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}
