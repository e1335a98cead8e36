//! Access to a server: certificates and users.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::reaper::{UNDERTAKER, remove};

/// Access of a client: TLS or not, a login or none.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tls: Option<Certificates>,
    login: Option<TestLogin>,
}

impl Access {
    pub(super) fn new(tls: Option<Certificates>, login: Option<TestLogin>) -> Self {
        Self { tls, login }
    }

    pub(super) fn login(&self) -> Option<&TestLogin> {
        self.login.as_ref()
    }

    pub(super) fn tls_config(&self) -> Option<Arc<ClientConfig>> {
        self.tls.as_ref().map(|tls| Arc::clone(&tls.0.client))
    }

    /// Returns `scheme://user:password@`, the start of a URL before the addresses.
    pub(super) fn url_start(&self, plain: &str, tls: &str) -> String {
        let scheme = if self.tls.is_some() { tls } else { plain };
        match &self.login {
            None => format!("{scheme}://"),
            Some(TestLogin { user, password }) => format!("{scheme}://{user}:{password}@"),
        }
    }
}

/// A user and its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestLogin {
    /// The user's name.
    pub user: String,
    /// In the clear: it is for tests.
    pub password: String,
}

impl TestLogin {
    /// Returns the user of the tests themselves, with all permissions.
    pub fn admin() -> Self {
        Self::new("admin", "admin-secret")
    }

    /// Returns the user that the limiter logs in as.
    pub fn limiter() -> Self {
        Self::new("limiter", "limiter-secret")
    }

    fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }
}

/// Users: `admin`, with all permissions; `limiter`, with those of its rules; and no other, because
/// the user without a name is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    limiter: String,
}

impl Acl {
    /// Returns a limiter with these rules, in the words of `ACL SETUSER`, besides its password:
    /// `~rl:* -@all +@scripting +get +set`.
    pub fn limiter(rules: &str) -> Self {
        Self {
            limiter: rules.to_owned(),
        }
    }

    /// Returns the lines of a server's configuration.
    pub(super) fn lines(&self) -> Vec<String> {
        let TestLogin { user, password } = TestLogin::admin();
        let mut lines = Self::users(&self.limiter);
        lines.push(format!("masteruser {user}"));
        lines.push(format!("masterauth {password}"));
        lines
    }

    /// Returns the lines of the configuration of a sentinel, which has no keys to guard.
    pub(super) fn sentinel_lines(master: &str) -> Vec<String> {
        let TestLogin { user, password } = TestLogin::admin();
        let mut lines = Self::users(
            "resetchannels &* -@all +@connection +subscribe +psubscribe +role +info +hello \
             +sentinel|get-master-addr-by-name +sentinel|master +sentinel|masters \
             +sentinel|sentinels +sentinel|replicas +sentinel|slaves",
        );
        lines.push(format!("sentinel auth-user {master} {user}"));
        lines.push(format!("sentinel auth-pass {master} {password}"));
        lines.push(format!("sentinel sentinel-user {user}"));
        lines.push(format!("sentinel sentinel-pass {password}"));
        lines
    }

    fn users(rules: &str) -> Vec<String> {
        let (admin, limiter) = (TestLogin::admin(), TestLogin::limiter());
        vec![
            "user default off".to_owned(),
            format!("user {} on >{} ~* &* +@all", admin.user, admin.password),
            format!("user {} on >{} {rules}", limiter.user, limiter.password),
        ]
    }
}

/// An authority made on the spot, and certificates that it signed: one for servers, one for
/// clients. The files are there for as long as a clone of this is.
#[derive(Debug, Clone)]
pub struct Certificates(Arc<TestCertificates>);

#[derive(Debug)]
struct TestCertificates {
    folder: PathBuf,
    client: Arc<ClientConfig>,
}

impl Certificates {
    /// Creates a new authority, which no other program trusts.
    pub fn make() -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        name(&mut params, "authority");
        let authority = CertifiedIssuer::self_signed(params, new_key()).expect("its own key");

        let folder = UNDERTAKER.folder();
        write(&folder, "ca.crt", &authority.pem());
        for whose in ["server", "client"] {
            let key = new_key();
            let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
            let mut params = CertificateParams::new(names).expect("names that are allowed");
            name(&mut params, whose);
            let signed = params.signed_by(&key, &authority).expect("its own key");
            write(&folder, &format!("{whose}.crt"), &signed.pem());
            write(&folder, &format!("{whose}.key"), &key.serialize_pem());
        }
        let client = Arc::new(client_config(&folder));
        Self(Arc::new(TestCertificates { folder, client }))
    }

    /// Returns the authority's certificate, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.0.folder.join("ca.crt")
    }

    /// Returns a client's certificate, in PEM.
    pub fn client_certificate(&self) -> PathBuf {
        self.0.folder.join("client.crt")
    }

    /// Returns the key of the client's certificate, in PEM.
    pub fn client_key(&self) -> PathBuf {
        self.0.folder.join("client.key")
    }

    /// Returns the lines of a server's configuration.
    pub(super) fn lines(&self, port: u16, ask_clients: bool) -> Vec<String> {
        let folder = self.0.folder.display();
        let ask = if ask_clients { "yes" } else { "no" };
        vec![
            "port 0".to_owned(),
            format!("tls-port {port}"),
            format!("tls-cert-file {folder}/server.crt"),
            format!("tls-key-file {folder}/server.key"),
            format!("tls-ca-cert-file {folder}/ca.crt"),
            format!("tls-auth-clients {ask}"),
            "tls-replication yes".to_owned(),
        ]
    }
}

impl Drop for TestCertificates {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// OpenSSL takes a certificate that bears its issuer's name for one that signed itself.
fn name(params: &mut CertificateParams, name: &str) {
    params.distinguished_name.push(DnType::CommonName, name);
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("there is randomness")
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("the folder is ours");
}

fn client_config(folder: &Path) -> ClientConfig {
    let read = |name: &str| CertificateDer::from_pem_file(folder.join(name)).expect("just written");
    let mut roots = RootCertStore::empty();
    roots.add(read("ca.crt")).expect("an authority");
    let key = PrivateKeyDer::from_pem_file(folder.join("client.key")).expect("just written");
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![read("client.crt")], key)
        .expect("its own key")
}
