//! Units: costs such as `tokens=800`, and the unit of the band in the reply.

use crate::kit::{Client, Server};
use crate::same::values;

const LLM: &str = "
listen: { http: '127.0.0.1:0', resp: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: llm
    limits:
      - { name: calls, key: user, rate: 10/min, algorithm: fixed-window }
      - { name: tokens, key: user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
";

#[tokio::test]
async fn a_check_has_a_cost_by_unit() {
    let server = Server::start(LLM).await;
    let mut client = Client::connect(server.resp).await;
    let said = client.ask("TG.CHECK llm user ann cost tokens=800").await;
    assert_eq!(
        values(&said)[..4],
        ["1", "tokens", "1000/h", "200"],
        "{said}"
    );
    assert_eq!(values(&said)[7..], ["tokens"], "{said}");
    let said = client
        .ask("TG.CHECK llm user ann cost tokens=201,requests=2")
        .await;
    assert_eq!(
        values(&said)[..4],
        ["0", "tokens", "1000/h", "200"],
        "{said}"
    );
    // A band of requests has no unit, and a number is of requests.
    let said = client.ask("TG.CHECK llm user ann cost 2").await;
    assert_eq!(values(&said)[..4], ["1", "calls", "10/min", "7"], "{said}");
    assert_eq!(values(&said).len(), 7, "{said}");
    client.ask("HELLO 3").await;
    let said = client.ask("TG.CHECK llm user ann cost tokens=100").await;
    assert!(said.starts_with("%8\r\n"), "{said}");
    assert!(said.ends_with("$4\r\nunit\r\n$6\r\ntokens\r\n"), "{said}");
}

#[tokio::test]
async fn a_bad_cost_is_an_error_that_charges_nothing() {
    let server = Server::start(LLM).await;
    let mut client = Client::connect(server.resp).await;
    let many: Vec<String> = (0..1_000).map(|nth| format!("u{nth}=1")).collect();
    for (cost, said) in [
        (
            many.join(",").as_str(),
            "-ERR cost: a cost has at most 16 units\r\n",
        ),
        (
            "tokenz=1",
            "-ERR policy `llm`: unknown unit `tokenz`; expected `requests`, `tokens`\r\n",
        ),
        (
            "tokens=1,tokens=2",
            "-ERR cost: a cost names the unit `tokens` twice\r\n",
        ),
        ("tokens=-1", "-ERR cost: `-1` is not a whole number\r\n"),
        (
            "tokens=18446744073709551616",
            "-ERR cost: `18446744073709551616` is not a whole number\r\n",
        ),
        (
            "many",
            "-ERR cost: expected a whole number, found `many`\r\n",
        ),
    ] {
        let command = format!("TG.CHECK llm user ann cost {cost}");
        assert_eq!(client.ask(&command).await, said);
    }
    let huge = format!("TG.CHECK llm user ann cost requests=1,tokens={}", u64::MAX);
    let said = client.ask(&huge).await;
    assert_eq!(values(&said)[..2], ["0", "tokens"], "{said}");
    let said = client.ask("TG.CHECK llm user ann cost 0").await;
    assert_eq!(values(&said)[3], "10", "{said}");
    let said = client
        .ask("TG.CHECK llm user ann cost requests=0,tokens=1")
        .await;
    assert_eq!(values(&said)[3], "999", "{said}");
}
