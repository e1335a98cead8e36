//! Sources over TLS, with private certificates.

use super::double::Double;
use super::kit::{AWAY, Program, policies};
use crate::kit::certificates::Certificates;
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::json;
use std::fs;

/// Returns a keeper's document with one policy.
fn document(rate: &str) -> String {
    json!({ "value": policies("api", rate) }).to_string()
}

fn config(keeper: &Double, tls: &str) -> String {
    format!(
        "sources: [{{ keeper: {{ url: 'https://{}', key: k, password: hush, format: tidegate\
         {tls} }}, refresh: 100ms, timeout: 1s }}]",
        keeper.address
    )
}

#[tokio::test]
async fn a_keeper_with_a_private_authority_is_trusted() {
    let certificates = Certificates::make();
    let keeper = Double::secure(&certificates).await;
    keeper.say(None, &document("5/s"));
    let ca = certificates.path("ca.pem");
    let tls = format!(", tls: {{ ca: '{ca}', server_name: localhost }}");
    let mut program = Program::start(&config(&keeper, &tls)).await;
    assert_eq!(program.band("api").await, "5/s");
    keeper.hang_up();
    program.process.logs(AWAY, ("source", "keeper")).await;
}

/// Returns a self-signed certificate, as `openssl req -x509` makes it.
fn self_signed() -> Certificates {
    let made = Certificates::make();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let cert = params.self_signed(&key).unwrap().pem();
    for (name, pem) in [
        ("cert.pem", &cert),
        ("ca.pem", &cert),
        ("key.pem", &key.serialize_pem()),
    ] {
        fs::write(made.path(name), pem).unwrap();
    }
    made
}

#[tokio::test]
async fn a_self_signed_certificate_was_not_accepted_as_its_own_authority() {
    let certificates = self_signed();
    let keeper = Double::secure(&certificates).await;
    keeper.say(None, &document("5/s"));
    let ca = certificates.path("ca.pem");
    let tls = format!(", tls: {{ ca: '{ca}', server_name: localhost }}");
    let program = Program::start(&config(&keeper, &tls)).await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_keeper_with_an_untrusted_certificate_gets_no_password() {
    let (certificates, others) = (Certificates::make(), Certificates::make());
    let keeper = Double::secure(&certificates).await;
    keeper.say(None, &document("5/s"));
    let (ca, other) = (certificates.path("ca.pem"), others.path("ca.pem"));
    let folder = Folder::make();
    for tls in [
        // Unknown to the system, signed by another authority, and for another name.
        String::new(),
        format!(", tls: {{ ca: '{other}', server_name: localhost }}"),
        format!(", tls: {{ ca: '{ca}', server_name: elsewhere.internal }}"),
        format!(", tls: {{ ca: '{ca}' }}"),
    ] {
        let file = folder.write("tidegate.yaml", config(&keeper, &tls));
        let ended = run(tidegate(&["validate", &file])).await;
        assert_eq!(ended.status.code(), Some(1), "{tls}: {}", ended.stderr);
        assert!(ended.stderr.contains("certificate"), "{}", ended.stderr);
    }
    assert_eq!(keeper.times(), 0);
}

#[tokio::test]
async fn a_replaced_authority_is_trusted_without_a_signal() {
    let (certificates, folder) = (Certificates::make(), Folder::make());
    let keeper = Double::secure(&certificates).await;
    keeper.say(None, &document("5/s"));
    let old = Certificates::make().authority_pem();
    let ca = folder.write("ca.pem", old);
    let tls = format!(
        ", fallback: '{}', tls: {{ ca: '{ca}', server_name: localhost }}",
        policies("api", "1/s")
    );
    let mut program = Program::start(&config(&keeper, &tls)).await;
    assert_eq!(program.band("api").await, "1/s");
    folder.write("ca.pem", certificates.authority_pem());
    program
        .process
        .logs("config source loaded", ("source", "keeper"))
        .await;
    assert_eq!(program.band("api").await, "5/s");
}
