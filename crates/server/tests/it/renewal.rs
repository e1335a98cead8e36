//! Certificates that are replaced while they are in use.

use crate::kit::certificates::Certificates;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::tls::connect;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::net::SocketAddr;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

const RENEWED: &str = "TLS files reloaded; new connections use them";
const KEPT: &str = "TLS reload failed; keeping the previous files";
const LISTENERS: [&str; 5] = ["http", "grpc", "resp", "gateway", "admin"];

/// Returns a certificate that expires in this year, and its key.
pub(crate) fn pair(year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 1, 1);
    let cert = params.self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

/// Returns the same certificate with an invalid time of expiry.
fn without_expiry(pem: &str, year: i32) -> String {
    let mut der = CertificateDer::from_pem_slice(pem.as_bytes())
        .unwrap()
        .to_vec();
    let expiry = format!("{:02}0101000000Z", year % 100);
    let at = der
        .windows(expiry.len())
        .position(|bytes| bytes == expiry.as_bytes());
    der[at.unwrap() + expiry.len() - 1] = b'?';
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        STANDARD.encode(der)
    )
}

/// A server whose five listeners share one certificate, in a writable folder.
struct RenewalServer {
    folder: Folder,
    process: Process,
    addresses: Vec<SocketAddr>,
    served: (String, String),
}

impl RenewalServer {
    async fn start(flags: &[&str]) -> Self {
        let (folder, served) = (Folder::make(), pair(2031));
        let cert = folder.write("cert.pem", &served.0);
        let key = folder.write("key.pem", &served.1);
        let listener =
            format!("{{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}' }} }}");
        let listening: Vec<_> = LISTENERS
            .iter()
            .map(|name| format!("{name}: {listener}"))
            .collect();
        let config = format!(
            "
listen: {{ {} }}
routes: [{{ name: all, upstreams: 'http://127.0.0.1:9' }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 100/s }}] }}]
",
            listening.join(", ")
        );
        let config = folder.write("tidegate.yaml", config);
        let arguments = [&["serve", "--config", &config], flags].concat();
        let mut process = Process::start(tidegate(&arguments));
        process.address("admin").await;
        let addresses = LISTENERS.iter().map(|name| process.opened(name)).collect();
        Self {
            folder,
            process,
            addresses,
            served,
        }
    }

    /// Writes another certificate into the files.
    fn replace(&mut self, new: (String, String)) {
        self.folder.write("cert.pem", &new.0);
        self.folder.write("key.pem", &new.1);
        self.served = new;
    }

    /// Returns true if new connections to all listeners get the certificate of the files.
    async fn serves(&self, served: &(String, String)) -> bool {
        let mut count = 0;
        for address in &self.addresses {
            count += usize::from(connect(*address, &served.0, None).await.is_ok());
        }
        assert!([0, LISTENERS.len()].contains(&count), "{count} listeners");
        count > 0
    }

    /// Waits until all listeners have logged `message`.
    async fn all_log(&mut self, message: &str) {
        for name in LISTENERS {
            self.process.logs(message, ("listener", name)).await;
        }
    }
}

#[tokio::test]
async fn a_certificate_that_was_replaced_is_served_without_a_restart() {
    let mut stand = RenewalServer::start(&[]).await;
    let first = stand.served.clone();
    assert!(stand.serves(&first).await);
    let mut old = connect(stand.addresses[0], &first.0, None).await.unwrap();
    assert!(old.post("{}").await.is_allowed());
    stand.replace(pair(2032));
    stand.all_log(RENEWED).await;
    assert!(stand.serves(&stand.served).await);
    assert!(!stand.serves(&first).await);
    // Existing connections continue.
    assert!(old.post("{}").await.is_allowed());
    let admin = connect(stand.addresses[4], &stand.served.0, None).await;
    let page = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
    let page = admin.unwrap().ask(page).await.body;
    for listener in LISTENERS {
        let line = format!(
            "tidegate_tls_certificate_expiry_timestamp_seconds{{listener=\"{listener}\"}} 1956528000\n"
        );
        assert!(page.contains(&line), "{page}");
    }
}

#[tokio::test]
async fn an_unreadable_expiry_does_not_show_the_old_one() {
    const SERIES: &str = "tidegate_tls_certificate_expiry_timestamp_seconds{";
    let mut stand = RenewalServer::start(&[]).await;
    let admin = connect(stand.addresses[4], &stand.served.0, None).await;
    let mut admin = admin.unwrap();
    let page = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(admin.ask(page).await.body.contains(SERIES));
    let (cert, key) = pair(2032);
    stand.replace((without_expiry(&cert, 2032), key));
    stand.all_log(RENEWED).await;
    let shown = admin.ask(page).await.body;
    assert!(!shown.contains(SERIES), "{shown}");
}

#[tokio::test]
async fn a_mismatched_key_pair_keeps_the_old_one_until_a_reload() {
    let mut stand = RenewalServer::start(&["--no-watch"]).await;
    let first = stand.served.clone();
    for (cert, key) in [
        (pair(2032).0, first.1.clone()),
        (first.0.clone(), pair(2032).1),
        (first.0.clone(), String::new()),
        ("no certificate".to_owned(), first.1.clone()),
    ] {
        stand.replace((cert, key));
        stand.process.signal("HUP").await;
        stand.all_log(KEPT).await;
        assert!(stand.serves(&first).await);
    }
    stand.replace(pair(2032));
    stand.process.signal("HUP").await;
    stand.all_log(RENEWED).await;
    assert!(stand.serves(&stand.served).await);
    assert!(!stand.serves(&first).await);
}

#[tokio::test]
async fn a_broken_certificate_file_is_logged_once() {
    let mut stand = RenewalServer::start(&[]).await;
    let first = stand.served.clone();
    stand.replace((first.0.clone(), "broken".to_owned()));
    stand.all_log(KEPT).await;
    stand.replace(pair(2032));
    stand.all_log(RENEWED).await;
    let lines = stand.process.logged.iter();
    assert_eq!(
        lines.filter(|line| line.contains(KEPT)).count(),
        LISTENERS.len()
    );
}

#[tokio::test]
async fn the_authority_of_callers_is_replaced_as_well() {
    let [server, old, new] = [(); 3].map(|()| Certificates::make());
    let folder = Folder::make();
    let ca = folder.write("callers.pem", old.authority_pem());
    let config = crate::tls::config(&server, true).replace(&server.path("ca.pem"), &ca);
    let config = folder.write("tidegate.yaml", config);
    let mut process = Process::start(tidegate(&["serve", "--no-watch", "--config", &config]));
    process.address("admin").await;
    let http = process.opened("http");
    let authority = server.authority_pem();
    let enters = async |caller: &Certificates| {
        let identity = Some(caller.sign("caller"));
        let Ok(mut client) = connect(http, &authority, identity).await else {
            return false;
        };
        // In TLS 1.3 a client learns that it was rejected only when it reads.
        let question = crate::kit::client::question("{}");
        client.try_send(&question).await.is_ok() && matches!(client.try_reply().await, Ok(Some(_)))
    };
    assert!(enters(&old).await && !enters(&new).await);
    folder.write("callers.pem", new.authority_pem());
    process.signal("HUP").await;
    process.logs(RENEWED, ("listener", "http")).await;
    assert!(enters(&new).await && !enters(&old).await);
}
