//! TLS, client certificates and tokens.

use crate::kit::{EDGE, Server, about, codes, in_time};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;
use tidegate_net::bounds::Bounds;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// An authority, and a folder with a certificate that it signed. Dropping it removes the folder.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn make(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = format!("tidegate-grpc-test-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let made = Self { issuer, folder };
        let (cert, key) = made.sign();
        for (name, text) in [("cert", cert), ("key", key), ("ca", made.issuer.pem())] {
            std::fs::write(made.folder.join(name), text).unwrap();
        }
        made
    }

    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        (cert.pem(), key.serialize_pem())
    }

    async fn server(&self, more: &str) -> Server {
        let folder = self.folder.display();
        let config = format!(
            "listen: {{ admin: '127.0.0.1:0', grpc: {{ address: '127.0.0.1:0', \
             tls: {{ cert: '{folder}/cert', key: '{folder}/key'{} }} }} }}\n{EDGE}",
            more.replace("FOLDER", &folder.to_string())
        );
        Server::with(&config, Bounds::default()).await
    }

    fn trusting(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(self.issuer.pem()))
            .domain_name("localhost")
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// Returns true if a call over TLS gets a response.
async fn passes(server: &Server, tls: ClientTlsConfig) -> bool {
    let endpoint = Endpoint::from_shared(format!("https://{}", server.grpc)).unwrap();
    let Ok(channel) = in_time(endpoint.tls_config(tls).unwrap().connect()).await else {
        return false;
    };
    let mut client = RateLimitServiceClient::new(channel);
    let answer = in_time(client.should_rate_limit(about(&[&[("user", "ann")]]))).await;
    answer.is_ok_and(|answer| codes(&answer.into_inner())[0] == "OK")
}

#[tokio::test]
async fn a_listener_with_tls_answers_over_tls_and_not_without() {
    let authority = Authority::make("tls");
    let server = authority.server("").await;
    assert!(passes(&server, authority.trusting()).await);
    let plain = Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
    let mut client = RateLimitServiceClient::new(plain.connect_lazy());
    assert!(in_time(client.should_rate_limit(about(&[]))).await.is_err());
}

#[tokio::test]
async fn callers_need_a_certificate_if_the_listener_requires_one() {
    let authority = Authority::make("callers");
    let server = authority.server(", client_ca: 'FOLDER/ca'").await;
    let (cert, key) = authority.sign();
    let known = authority.trusting().identity(Identity::from_pem(cert, key));
    assert!(passes(&server, known).await);
    assert!(!passes(&server, authority.trusting()).await);
}

#[tokio::test]
async fn calls_need_a_token_and_probes_do_not() {
    let config = format!(
        "listen: {{ admin: '127.0.0.1:0', grpc: {{ address: '127.0.0.1:0', token: hunter2 }} }}\n{EDGE}"
    );
    let server = Server::with(&config, Bounds::default()).await;
    let mut client = server.client().await;
    let mut call = Request::new(about(&[&[("user", "ann")]]));
    let error = in_time(client.should_rate_limit(about(&[])))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unauthenticated);
    let token = "Bearer hunter2".parse().unwrap();
    call.metadata_mut().insert("authorization", token);
    let answer = in_time(client.should_rate_limit(call)).await.unwrap();
    assert_eq!(codes(&answer.into_inner())[0], "OK");

    let mut health = HealthClient::new(server.channel().await);
    let question = HealthCheckRequest::default();
    assert!(in_time(health.check(question)).await.is_ok());
}
