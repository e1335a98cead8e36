//! curl and h2load.

use super::secured;
use crate::kit::certificates::Certificates;
use crate::kit::programs::Program;
use crate::kit::{Answer, Upstream, gate, in_time};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Runs a program to its end, with `input` as its stdin.
async fn run(program: Program, arguments: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program.find()?);
    command.args(arguments).env_clear().kill_on_drop(true);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let told = async {
        // A program that does not read it may have ended already.
        stdin.write_all(input).await.ok();
        drop(stdin);
    };
    let ran = async { tokio::join!(told, child.wait_with_output()).1 };
    Some(in_time("the end of a program", ran).await.unwrap())
}

/// Returns the output of curl with these arguments: the body, and then the version and the status.
async fn curl(words: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let fixed = [
        "--silent",
        "--show-error",
        "--write-out",
        " %{http_version} %{response_code}",
    ];
    let output = run(Program::Curl, &[&fixed, words].concat(), input).await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    Some(output.stdout)
}

/// Returns the same as text.
async fn curl_says(words: &[&str]) -> Option<String> {
    Some(String::from_utf8(curl(words, &[]).await?).unwrap())
}

#[tokio::test]
async fn curl_with_prior_knowledge() {
    let upstream = Upstream::start().await;
    let gate = gate::limited(format!("http://{}", upstream.address), "rate: 1/h burst 4").await;
    let url = |path: &str| format!("http://{}{path}", gate.address);
    let by = "--http2-prior-knowledge";
    let Some(said) = curl_says(&[by, &url("/a?b=c")]).await else {
        return;
    };
    assert_eq!(said, "GET /a?b=c 2 200");
    let said = curl_says(&[by, "--request", "PROPFIND", &url("/")]).await;
    assert_eq!(said.unwrap(), "PROPFIND / 2 200");
    let said = curl_says(&[by, "--head", &url("/")]).await.unwrap();
    assert!(
        said.ends_with(" 2 200") && said.contains("content-length: 6\r\n"),
        "{said}"
    );
    upstream.seen();
    let said = curl_says(&[by, "--data", "hello", "--header", "x-a: 1", &url("/b")]).await;
    assert_eq!(said.unwrap(), "POST /b 2 200");
    let seen = upstream.saw();
    assert_eq!(seen.content.bytes, b"hello");
    assert_eq!(seen.head.get("x-a"), Some("1"));
    assert_eq!(seen.head.get("host"), Some(&*gate.address.to_string()));
    assert_eq!(seen.head.get("via"), Some("2.0 tidegate"));
    let said = curl_says(&[by, &url("/")]).await.unwrap();
    assert!(said.ends_with(" 2 429"), "{said}");
    assert_eq!(upstream.seen().len(), 0);
}

#[tokio::test]
async fn curl_offering_an_upgrade_gets_a_plain_response() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let url = format!("http://{}/", gate.address);
    let Some(said) = curl_says(&["--http2", &url]).await else {
        return;
    };
    assert_eq!(said, "GET / 1.1 200");
    assert_eq!(upstream.saw().head.get("upgrade"), None);
}

#[tokio::test]
async fn curl_by_tls() {
    let certificates = Certificates::make();
    let upstream = Upstream::start().await;
    let gate = secured(&upstream, &certificates).await;
    let url = format!("https://localhost:{}/", gate.address.port());
    let Some(said) = curl_says(&["--http2", "--insecure", &url]).await else {
        return;
    };
    assert_eq!(said, "GET / 2 200");
    let said = curl_says(&["--http1.1", "--insecure", &url]).await;
    assert_eq!(said.unwrap(), "GET / 1.1 200");
    let heads: Vec<_> = upstream.seen().into_iter().map(|seen| seen.head).collect();
    let vias: Vec<_> = heads.iter().map(|head| head.get("via").unwrap()).collect();
    assert_eq!(vias, ["2.0 tidegate", "1.1 tidegate"]);
    assert!(
        heads
            .iter()
            .all(|head| head.get("x-forwarded-proto") == Some("https"))
    );
}

#[tokio::test]
async fn curl_sends_and_gets_five_megabytes() {
    let large: Vec<u8> = (0..5 << 20)
        .map(|nth: u32| u8::try_from(nth % 251).unwrap())
        .collect();
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let url = format!("http://{}/", gate.address);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", large.len());
    upstream.answers(Answer::of([head.as_bytes(), &large].concat()));
    let words = ["--http2-prior-knowledge", "--upload-file", "-", &url];
    let Some(said) = curl(&words, &large).await else {
        return;
    };
    assert!(
        said == [&large[..], b" 2 200"].concat(),
        "{} bytes",
        said.len()
    );
    assert!(upstream.saw().content.bytes == large);
}

#[tokio::test]
async fn h2load_gets_an_answer_to_everything() {
    let upstream = Upstream::start().await;
    let gate = gate::open(format!("http://{}", upstream.address), "").await;
    let url = format!("http://{}/", gate.address);
    let words = [
        "--requests=2000",
        "--clients=4",
        "--max-concurrent-streams=50",
        &url,
    ];
    let Some(output) = run(Program::H2load, &words, &[]).await else {
        return;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    let all = "2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout";
    assert!(said.contains(all), "{said}");
    assert!(
        said.contains("status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx"),
        "{said}"
    );
    assert_eq!(upstream.seen().len(), 2000);
}

#[tokio::test]
async fn h2load_is_limited_to_the_last_request() {
    let upstream = Upstream::start().await;
    let gate = gate::limited(
        format!("http://{}", upstream.address),
        "rate: 1/h burst 700",
    )
    .await;
    let url = format!("http://{}/", gate.address);
    let words = [
        "--requests=2000",
        "--clients=4",
        "--max-concurrent-streams=50",
        &url,
    ];
    let Some(output) = run(Program::H2load, &words, &[]).await else {
        return;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("status codes: 700 2xx, 0 3xx, 1300 4xx, 0 5xx"),
        "{said}"
    );
    assert_eq!(upstream.seen().len(), 700);
}
