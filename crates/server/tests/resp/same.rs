//! The same decision as at `/v1/check`, field by field.

use crate::kit::{CONFIG, Client, Server, bulk, in_time};
use proptest::prelude::*;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// A check request as a list of fields.
type Fields = Vec<(&'static str, &'static str)>;

fn fields() -> impl Strategy<Value = Fields> {
    let choose = |name, values: &'static [&'static str]| {
        proptest::option::of(proptest::sample::select(values).prop_map(move |value| (name, value)))
    };
    (
        choose("ip", &["192.0.2.1", "::1"]),
        choose("user", &["ann", "bob", ""]),
        choose("path", &["/teams/a", "/x", "/"]),
        choose("attr:team", &["red", "ü"]),
        choose("cost", &["0", "1", "2", "3", "9"]),
        choose("header:X-A", &["1", "a\"b"]),
    )
        .prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f].into_iter().flatten().collect())
}

/// Returns the check request in JSON.
fn json(policy: &str, fields: &Fields) -> serde_json::Value {
    let mut question = serde_json::json!({ "policy": policy, "headers": {}, "attributes": {} });
    for (name, value) in fields {
        match name.split_once(':') {
            Some(("header", name)) => question["headers"][name] = (*value).into(),
            Some((_, name)) => question["attributes"][name] = (*value).into(),
            None if *name == "cost" => question["cost"] = value.parse::<u64>().unwrap().into(),
            None => question[name] = (*value).into(),
        }
    }
    question
}

async fn by_http(address: SocketAddr, question: &serde_json::Value) -> serde_json::Value {
    let body = question.to_string();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    in_time("an answer", reading).await.unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Returns the response of `/v1/check` in the fields of `TG.CHECK`, without times, which differ.
fn expected(answer: &serde_json::Value) -> Vec<String> {
    let text = |name: &str| answer[name].as_str().map_or("-1".to_owned(), str::to_owned);
    let remaining = answer["remaining"]
        .as_u64()
        .map_or("-1".to_owned(), |it| it.to_string());
    let never = answer["allowed"] == false && answer["retry_after_ms"].is_null();
    vec![
        i32::from(answer["allowed"] == true).to_string(),
        text("limit"),
        text("band"),
        remaining,
        if never { "never" } else { "sometime" }.to_owned(),
    ]
}

/// Returns the values of a reply with seven fields, without lengths.
pub(crate) fn values(reply: &str) -> Vec<String> {
    let lines: Vec<_> = reply.lines().skip(1).collect();
    let mut values = Vec::new();
    let mut lines = lines.into_iter();
    while let Some(line) = lines.next() {
        match line.split_at(1) {
            (":", number) => values.push(number.to_owned()),
            ("$", "-1") => values.push("-1".to_owned()),
            _ => values.push(lines.next().unwrap_or_default().to_owned()),
        }
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Two servers with one configuration get the same requests in the same order: one as JSON, the
    /// other as commands.
    #[test]
    fn a_trace_is_decided_alike_by_either_frontend(
        trace in proptest::collection::vec((proptest::sample::select(vec!["api", "other"]), fields()), 1..20)
    ) {
        Runtime::new().unwrap().block_on(async {
            let by_json = Server::start(CONFIG).await;
            let by_command = Server::start(CONFIG).await;
            let mut client = Client::connect(by_command.resp).await;
            for (policy, fields) in &trace {
                let answer = by_http(by_json.http, &json(policy, fields)).await;
                let mut words = vec!["TG.CHECK", policy];
                for (name, value) in fields {
                    words.extend([*name, *value]);
                }
                client.send(&bulk(&words)).await;
                let said = values(&client.reply().await);
                let never = said[0] == "0" && said[4] == "-1";
                let mut heard = said[..4].to_vec();
                heard.push(if never { "never" } else { "sometime" }.to_owned());
                assert_eq!(heard, expected(&answer), "{policy} {fields:?}");
            }
        });
    }
}
