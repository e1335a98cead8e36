//! Certificates that are replaced while they are served.

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

const RENEWED: &str = "TLS files changed; new connections use the new ones";
const KEPT: &str = "cannot use the changed TLS files; keeping the previous ones";
const DOORS: [&str; 5] = ["http", "grpc", "resp", "gateway", "admin"];

/// A certificate that expires in this year, and its key.
fn pair(year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 1, 1);
    let cert = params.self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

/// The same certificate with a time of expiry that is not written as a certificate must.
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

/// A server whose five listeners have one certificate, in a folder that can be written to.
struct Stand {
    folder: Folder,
    process: Process,
    addresses: Vec<SocketAddr>,
    served: (String, String),
}

impl Stand {
    async fn start(flags: &[&str]) -> Self {
        let (folder, served) = (Folder::make(), pair(2031));
        let cert = folder.write("cert.pem", &served.0);
        let key = folder.write("key.pem", &served.1);
        let door = format!("{{ address: '127.0.0.1:0', tls: {{ cert: '{cert}', key: '{key}' }} }}");
        let doors: Vec<_> = DOORS.iter().map(|name| format!("{name}: {door}")).collect();
        let config = format!(
            "
listen: {{ {} }}
routes: [{{ id: all, upstreams: 'http://127.0.0.1:9' }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 100/s }}] }}]
",
            doors.join(", ")
        );
        let config = folder.write("tidegate.yaml", config);
        let arguments = [&["serve", "--config", &config], flags].concat();
        let mut process = Process::start(tidegate(&arguments));
        process.address("admin").await;
        let addresses = DOORS.iter().map(|name| process.opened(name)).collect();
        Self {
            folder,
            process,
            addresses,
            served,
        }
    }

    /// Puts another certificate into the files.
    fn replace(&mut self, new: (String, String)) {
        self.folder.write("cert.pem", &new.0);
        self.folder.write("key.pem", &new.1);
        self.served = new;
    }

    /// Whether new connections to all listeners get the certificate of the files.
    async fn serves(&self, served: &(String, String)) -> bool {
        let mut count = 0;
        for address in &self.addresses {
            count += usize::from(connect(*address, &served.0, None).await.is_ok());
        }
        assert!([0, DOORS.len()].contains(&count), "{count} listeners");
        count > 0
    }

    /// Waits until all listeners have logged `message`.
    async fn all_log(&mut self, message: &str) {
        for name in DOORS {
            self.process.logs(message, ("door", name)).await;
        }
    }
}

#[tokio::test]
async fn a_certificate_that_was_replaced_is_served_without_a_restart() {
    let mut stand = Stand::start(&[]).await;
    let first = stand.served.clone();
    assert!(stand.serves(&first).await);
    let mut old = connect(stand.addresses[0], &first.0, None).await.unwrap();
    assert!(old.post("{}").await.is_allowed());
    stand.replace(pair(2032));
    stand.all_log(RENEWED).await;
    assert!(stand.serves(&stand.served).await);
    assert!(!stand.serves(&first).await);
    // Connections from before go on.
    assert!(old.post("{}").await.is_allowed());
    let admin = connect(stand.addresses[4], &stand.served.0, None).await;
    let page = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
    let page = admin.unwrap().ask(page).await.body;
    for door in DOORS {
        let line = format!(
            "tidegate_tls_certificate_expiry_timestamp_seconds{{door=\"{door}\"}} 1956528000\n"
        );
        assert!(page.contains(&line), "{page}");
    }
}

#[tokio::test]
async fn the_old_expiry_is_not_shown_for_a_certificate_whose_expiry_cannot_be_read() {
    const SERIES: &str = "tidegate_tls_certificate_expiry_timestamp_seconds{";
    let mut stand = Stand::start(&[]).await;
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
async fn a_pair_that_does_not_match_keeps_the_old_one_and_a_signal_reads_the_next() {
    let mut stand = Stand::start(&["--no-watch"]).await;
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
async fn a_broken_file_is_complained_of_once() {
    let mut stand = Stand::start(&[]).await;
    let first = stand.served.clone();
    stand.replace((first.0.clone(), "broken".to_owned()));
    stand.all_log(KEPT).await;
    stand.replace(pair(2032));
    stand.all_log(RENEWED).await;
    let lines = stand.process.logged.iter();
    assert_eq!(
        lines.filter(|line| line.contains(KEPT)).count(),
        DOORS.len()
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
        // In TLS 1.3 a client learns of its refusal only once it reads.
        let question = crate::kit::client::question("{}");
        client.try_send(&question).await.is_ok() && matches!(client.try_reply().await, Ok(Some(_)))
    };
    assert!(enters(&old).await && !enters(&new).await);
    folder.write("callers.pem", new.authority_pem());
    process.signal("HUP").await;
    process.logs(RENEWED, ("door", "http")).await;
    assert!(enters(&new).await && !enters(&old).await);
}
