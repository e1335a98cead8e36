//! TLS and the password, with third-party clients.

use crate::kit::programs::Program;
use crate::kit::{CONFIG, Server};
use tidegate_testkit::redis::Certificates;

#[tokio::test]
async fn redis_cli_speaks_through_tls_with_a_password() {
    let certificates = Certificates::make();
    let tls = format!(
        "tls: {{ cert: '{}', key: '{}' }}",
        // Any certificate of the authority works.
        certificates.client_certificate().display(),
        certificates.client_key().display()
    );
    let resp = format!("resp: {{ address: '127.0.0.1:0', {tls}, token: hunter2 }}");
    let config = CONFIG.replace("resp: '127.0.0.1:0'", &resp);
    let server = Server::start(&config).await;
    let port = server.resp.port().to_string();
    let ca = certificates.authority().display().to_string();
    let words = [
        "--tls",
        "--cacert",
        &ca,
        "--sni",
        "localhost",
        "-p",
        &port,
        "--no-auth-warning",
    ];
    let with = |more: &[&'static str]| [&words[..], more].concat();
    let throttle = ["CL.THROTTLE", "user123", "15", "30", "60"];
    let logged_in = [&["-a", "hunter2"], &throttle[..]].concat();
    let Some(said) = Program::Cli.says(&with(&logged_in), "").await else {
        return;
    };
    assert_eq!(said, "0\n16\n15\n-1\n2\n");
    let said = Program::Cli.says(&with(&throttle), "").await.unwrap();
    assert_eq!(said.trim_end(), "NOAUTH Authentication required.");
}
