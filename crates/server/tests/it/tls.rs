//! TLS, with and without client certificates.

use crate::kit::certificates::Certificates;
use crate::kit::{Client, Server, ask, get};
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) fn config(certificates: &Certificates, client_ca: bool) -> String {
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| certificates.path(name));
    let client_ca = if client_ca {
        format!(", client_ca: '{ca}'")
    } else {
        String::new()
    };
    format!(
        "
listen:
  http: {{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}'{client_ca} }} }}
  admin: '127.0.0.1:0'
policies:
  - name: api
    limits:
      - {{ name: per-client, key: ip, rate: 10/s }}
"
    )
}

/// Connects as a client that trusts `authority`, and shows `identity` if it has one.
pub(crate) async fn connect(
    address: SocketAddr,
    authority: &str,
    identity: Option<(String, String)>,
) -> std::io::Result<Client<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap())
        .unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map(Client::over)
}

#[tokio::test]
async fn a_listener_with_tls_answers_over_tls_and_not_without() {
    let certificates = Certificates::make();
    let server = Server::start(&config(&certificates, false)).await;
    let authority = certificates.authority_pem();
    let mut client = connect(server.http, &authority, None).await.unwrap();
    assert!(client.post("{}").await.is_allowed());
    assert!(client.post("{}").await.is_allowed());
    // The peer address is known with TLS too.
    let asked = ask("/v1/auth").from("192.0.2.1");
    let reply = client.ask(&asked.text()).await;
    assert_eq!(
        (reply.status, reply.header("x-ratelimit-remaining")),
        (200, Some("9"))
    );

    let mut plain = Client::connect(server.http).await;
    plain
        .send("POST /v1/check HTTP/1.1\r\nhost: a\r\n\r\n")
        .await;
    assert!(!matches!(plain.try_reply().await, Ok(Some(_))));
    let metrics = get(server.admin, "/metrics").await.body;
    assert!(
        metrics.contains("tidegate_tls_handshake_failures_total{listener=\"http\"} 1\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn with_a_client_authority_only_its_certificates_are_accepted() {
    let certificates = Certificates::make();
    let server = Server::start(&config(&certificates, true)).await;
    let authority = certificates.authority_pem();

    let signed = certificates.sign("caller");
    let mut client = connect(server.http, &authority, Some(signed))
        .await
        .unwrap();
    assert!(client.post("{}").await.is_allowed());

    let stranger = Certificates::make().sign("caller");
    for identity in [None, Some(stranger)] {
        // In TLS 1.3 a client learns that it was rejected only when it reads.
        if let Ok(mut client) = connect(server.http, &authority, identity).await {
            client
                .try_send("POST /v1/check HTTP/1.1\r\nhost: a\r\n\r\n")
                .await
                .ok();
            assert!(!matches!(client.try_reply().await, Ok(Some(_))));
        }
    }
}

#[tokio::test]
async fn unusable_tls_files_are_named() {
    let certificates = Certificates::make();
    let good = config(&certificates, true);
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| certificates.path(name));
    let missing = certificates.path("missing.pem");
    let other = Certificates::make();
    for (bad, expected) in [
        (
            good.replace(&cert, &missing),
            format!("`{missing}` cannot be read"),
        ),
        (
            good.replace(&key, &missing),
            format!("`{missing}` cannot be read"),
        ),
        (
            good.replace(&ca, &missing),
            format!("`{missing}` cannot be read"),
        ),
        (
            good.replace(&cert, &key),
            format!("`{key}` holds no certificate in PEM"),
        ),
        (
            good.replace(&key, &ca),
            format!("`{ca}` holds no private key in PEM"),
        ),
        (
            good.replace(&key, &other.path("key.pem")),
            "do not match".to_owned(),
        ),
    ] {
        let config = Config::parse(&bad, "test.yaml", &NoEnvironment).unwrap();
        let error = tidegate_net::bind(&config.listen)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("listen.http.tls: "), "{error}");
        assert!(
            error.contains(&expected),
            "{error} should contain {expected}"
        );
    }
}
