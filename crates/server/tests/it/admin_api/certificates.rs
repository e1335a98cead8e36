use super::kit::AdminServer;
use crate::kit::Client;
use crate::kit::certificates::Certificates;
use crate::kit::folder::Folder;
use std::sync::Arc;
use tidegate_policy::text::Sha256;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[tokio::test]
async fn an_administrator_is_identified_by_a_client_certificate() {
    let certificates = Certificates::make();
    let ann = certificates.sign("ann");
    let der = CertificateDer::from_pem_slice(ann.0.as_bytes()).unwrap();
    let fingerprint = Sha256::of(&der);
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| certificates.path(name));
    let config = format!(
        "
listen:
  http: '127.0.0.1:0'
  admin: {{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}', client_ca: '{ca}' }} }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
admin: {{ certificates: [{{ name: ann, role: operate, fingerprint: '{fingerprint}' }}] }}
"
    );
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let authority = certificates.authority_pem();
    for (identity, expected) in [(ann, 200), (certificates.sign("bob"), 401)] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(client(&authority, &identity)));
        let stream = connector
            .connect("localhost".try_into().unwrap(), stream)
            .await;
        let mut client = Client::over(stream.unwrap());
        let reply = client
            .ask("GET /admin/v1/whoami HTTP/1.1\r\nhost: a\r\n\r\n")
            .await;
        assert_eq!(reply.status, expected, "{}", reply.body);
        if expected == 200 {
            assert_eq!(reply.json()["name"], "ann");
        }
    }
}

fn client(authority: &str, (cert, key): &(String, String)) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes());
    roots.add(authority.unwrap()).unwrap();
    let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![cert], key)
        .unwrap()
}
