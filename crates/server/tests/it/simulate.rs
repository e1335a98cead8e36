//! `tidegate simulate` as a process, and its edge cases.

use crate::kit::folder::Folder;
use crate::kit::in_time;
use crate::kit::process::{run, tidegate};
use crate::kit::simulation;
use std::io::{self, Read};
use std::process::Stdio;
use tidegate_control::failure::Failure;
use tidegate_server::simulate::formats::InputFormat;
use tidegate_server::simulate::lines::LINE_MAX;
use tokio::io::AsyncWriteExt;

const CONFIG: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/s burst 2 }
  - name: other
    limits:
      - { name: global, rate: 1/h }
";

const FIRST: &str = r#"{"allowed":true,"limit":"per-client","band":"1/s burst 2","remaining":1,"retry_after_ms":0,"reset_ms":1000}"#;
const SECOND: &str = r#"{"allowed":true,"limit":"per-client","band":"1/s burst 2","remaining":0,"retry_after_ms":0,"reset_ms":2000}"#;
const THIRD: &str = r#"{"allowed":false,"limit":"per-client","band":"1/s burst 2","remaining":0,"retry_after_ms":1000,"reset_ms":2000}"#;

fn line(at_ms: u64) -> String {
    format!(r#"{{"at_ms": {at_ms}, "ip": "192.0.2.1"}}"#)
}

fn refused(ended: Result<(), Failure>) -> String {
    match ended {
        Err(Failure::Input(message)) => message,
        other => panic!("expected bad input, found {other:?}"),
    }
}

#[test]
fn lines_may_end_in_any_way_and_be_blank() {
    for end in ["\n", "\r\n", "\n\n", "\n \t\r\n"] {
        for last in ["", end] {
            let text = [line(5), line(5)].join(end) + last;
            let simulated = simulation::run(CONFIG, text.as_bytes());
            simulated.ended.unwrap();
            assert_eq!(simulated.out, format!("{FIRST}\n{SECOND}\n"), "{text:?}");
        }
    }
}

#[test]
fn an_empty_trace_gives_an_empty_result() {
    for text in ["", "\n\n", "\u{feff}"] {
        let simulated = simulation::run(CONFIG, text.as_bytes());
        simulated.ended.unwrap();
        assert_eq!(simulated.out, "");
        assert!(
            simulated.err.contains("\n0 requests: 0 allowed"),
            "{}",
            simulated.err
        );
    }
}

#[test]
fn time_never_runs_backwards() {
    let text = [line(10_000), line(1), line(9_999)].join("\n");
    let simulated = simulation::run(CONFIG, text.as_bytes());
    assert_eq!(simulated.out, format!("{FIRST}\n{SECOND}\n{THIRD}\n"));
}

#[test]
fn a_limit_that_blocks_is_closed_for_its_length_from_the_first_refusal_on() {
    let config = CONFIG.replace("burst 2 }", "burst 2, block: 5m }");
    let at = [0, 0, 0, 1_000, 299_999, 300_000, 300_000, 300_000];
    let text = at.map(line).join("\n");
    let simulated = simulation::run(&config, text.as_bytes());
    simulated.ended.unwrap();
    let refused = |left_ms: u64| {
        format!(
            r#"{{"allowed":false,"limit":"per-client","band":"1/s burst 2","remaining":0,"retry_after_ms":{left_ms},"reset_ms":{left_ms},"reason":"limit-blocked"}}"#
        )
    };
    let told = |answer: &str| answer.replace('}', r#","reason":"allowed"}"#);
    let (first, second) = (told(FIRST), told(SECOND));
    let expected = [
        first.clone(),
        second.clone(),
        refused(300_000),
        refused(299_000),
        refused(1),
        first,
        second,
        refused(300_000),
    ];
    assert_eq!(simulated.out, expected.join("\n") + "\n");
}

#[test]
fn a_bad_trace_line_is_an_error_and_earlier_decisions_are_kept() {
    for (bad, expected) in [
        (
            r#"{"at_ms": 5, "ip": "x"}"#,
            "input:2:20: ip: `x` is not an IP address",
        ),
        (
            r#"{"at_ms": 5, "cost": []}"#,
            "input:2:22: cost: expected a whole number, found a list",
        ),
        (
            "nonsense",
            "input:2:1: expected an object, found something that is not JSON",
        ),
        (
            r#"{"at_ms": 5, "policy": "apu"}"#,
            "input:2: unknown policy `apu`; expected `api`, `other`",
        ),
    ] {
        let text = [&line(5), bad, &line(5)].join("\n");
        let simulated = simulation::run(CONFIG, text.as_bytes());
        assert_eq!(refused(simulated.ended), expected);
        assert_eq!(simulated.out, format!("{FIRST}\n"));
    }
}

#[test]
fn a_line_without_end_is_bounded() {
    let endless = io::repeat(b'x').take(20 * LINE_MAX as u64);
    let text = line(5) + "\n";
    let input = text
        .as_bytes()
        .chain(endless)
        .chain(&b"\n"[..])
        .chain(text.as_bytes());
    let simulated = simulation::run(CONFIG, input);
    assert_eq!(
        refused(simulated.ended),
        "input:2: this line is longer than 1,048,576 bytes"
    );
    assert_eq!(simulated.out, format!("{FIRST}\n"));

    let log = r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 5"#;
    let text = format!("{log}\n");
    let endless = io::repeat(b'x').take(3 * LINE_MAX as u64);
    let input = text
        .as_bytes()
        .chain(endless)
        .chain(&b"\n"[..])
        .chain(text.as_bytes());
    let simulated = simulation::run(CONFIG, input);
    simulated.ended.unwrap();
    assert_eq!(simulated.out, format!("{FIRST}\n{SECOND}\n"));
    assert!(simulated.err.contains("1 invalid line was skipped"));
}

#[test]
fn an_ambiguous_format_must_be_given() {
    let simulated = simulation::run(CONFIG, &b"hello\nworld\n"[..]);
    let message = refused(simulated.ended);
    assert!(message.contains("set --format"), "{message}");
    let simulated = simulation::run_as(Some(InputFormat::Trace), CONFIG, &b"hello\n"[..]);
    assert!(refused(simulated.ended).starts_with("input:1:1: "));
}

#[tokio::test]
async fn standard_output_has_decisions_and_nothing_else() {
    let folder = Folder::make();
    let config = folder.write("config.yaml", CONFIG);
    let trace = folder.write("trace.jsonl", [line(5), line(5), line(5)].join("\n"));
    let base = ["simulate", "--config", &config, "--trace", &trace];
    let decisions = format!("{FIRST}\n{SECOND}\n{THIRD}\n");

    let ended = run(tidegate(&base)).await;
    assert_eq!((ended.status.code(), &ended.stdout), (Some(0), &decisions));
    assert!(
        ended
            .stderr
            .contains("3 requests: 2 allowed (0 matched no limit), 1 refused")
    );
    assert!(
        ended
            .stderr
            .contains("api/per-client  ip:192.0.2.1        1"),
        "{}",
        ended.stderr
    );

    let ended = run(tidegate(&[&base[..], &["--progress"]].concat())).await;
    assert_eq!((ended.status.code(), &ended.stdout), (Some(0), &decisions));

    let ended = run(tidegate(&[&base[..], &["--quiet"]].concat())).await;
    assert_eq!((&ended.stdout, &*ended.stderr), (&decisions, ""));

    let ended = run(tidegate(&[&base[..], &["--summary-only"]].concat())).await;
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), ""));
    assert!(ended.stderr.contains("3 requests: "));

    let ended = run(tidegate(
        &[&base[..], &["--policy", "other", "--quiet"]].concat(),
    ))
    .await;
    assert_eq!(ended.stdout.matches(r#""limit":"global""#).count(), 3);
}

#[tokio::test]
async fn errors_exit_with_2() {
    let folder = Folder::make();
    let config = folder.write("config.yaml", CONFIG);
    let bad_config = folder.write(
        "bad.yaml",
        "policies: [{ name: api, limits: [{ rate: 1/x }] }]",
    );
    let trace = folder.write("trace.jsonl", format!("{}\n{{\n", line(5)));
    for (config, trace, extra, expected) in [
        (
            &config,
            &trace,
            &[][..],
            "trace.jsonl:2:2: expected a name in double quotes, found the end",
        ),
        (&bad_config, &trace, &[], "bad.yaml:1:"),
        (
            &config,
            &"/nowhere".to_owned(),
            &[],
            "cannot read /nowhere: ",
        ),
        (
            &"/nowhere".to_owned(),
            &trace,
            &[],
            "cannot read /nowhere: ",
        ),
        (
            &config,
            &trace,
            &["--policy", "apu"],
            "unknown policy `apu` in ",
        ),
        (&config, &trace, &["--format", "xml"], "invalid value 'xml'"),
    ] {
        let base = ["simulate", "--config", config, "--trace", trace];
        let ended = run(tidegate(&[&base[..], extra].concat())).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn decisions_are_printed_while_the_input_is_open() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let folder = Folder::make();
    let config = folder.write("config.yaml", CONFIG);
    let mut command = tidegate(&["simulate", "--config", &config, "--trace", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut decisions = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in [FIRST, SECOND, THIRD] {
        stdin.write_all((line(5) + "\n").as_bytes()).await.unwrap();
        let decision = in_time("a decision", decisions.next_line()).await.unwrap();
        assert_eq!(decision.as_deref(), Some(expected));
    }
    drop(stdin);
    let end = in_time("the end of decisions", decisions.next_line()).await;
    assert_eq!(end.unwrap(), None);
    let status = in_time("the end of the program", child.wait()).await;
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn a_closed_output_pipe_is_no_error() {
    let folder = Folder::make();
    let config = folder.write("config.yaml", CONFIG);
    let trace = folder.write("trace.jsonl", (line(5) + "\n").repeat(20_000));
    let mut command = tidegate(&["simulate", "--config", &config, "--trace", &trace]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = in_time("the end of the program", child.wait_with_output()).await;
    let ended = ended.unwrap();
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn identities_are_verified_at_the_time_of_the_trace() {
    // HS256, {"sub":"ann","exp":2000}, signed with the secret below.
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4iLCJleHAiOjIwMDB9.p0MKbmeyAyMTlN2X2BVhucGibj6m6B3M5yqaDMrVKWc";
    let config = "
client:
  user: { claim: sub }
  jwt: { secret: an example of a secret that is long enough, leeway: 0s }
policies:
  - name: api
    evaluate: first
    limits:
      - { name: per-user, key: user, missing: skip, rate: 10/h }
      - { name: per-address, key: ip, rate: 10/h }
";
    let line = |at_ms: u64| {
        format!("{{\"at_ms\": {at_ms}, \"headers\": {{\"Authorization\": \"Bearer {token}\"}}}}\n")
    };
    let trace = format!("{}{}", line(1_999_999), line(2_000_000));
    let simulated = simulation::run(config, trace.as_bytes());
    simulated.ended.expect("a valid config");
    let limits: Vec<bool> = simulated
        .out
        .lines()
        .map(|line| line.contains("\"per-user\""))
        .collect();
    assert_eq!(limits, [true, false], "{}", simulated.out);
}

/// A simulation began with the budgets of a server, and left its own in their place.
#[test]
fn a_simulation_used_the_snapshot_of_the_server() {
    let folder = Folder::make();
    let file = folder.write("buckets", "");
    std::fs::remove_file(&file).unwrap();
    let text = format!("store: {{ url: memory, snapshot: {{ file: '{file}' }} }}{CONFIG}");
    for _ in 0..2 {
        let simulated = simulation::run(&text, line(5).as_bytes());
        simulated.ended.unwrap();
        assert_eq!(simulated.out, format!("{FIRST}\n"));
    }
    for name in [file.clone(), format!("{file}.lock")] {
        assert!(!std::path::Path::new(&name).exists(), "{name}");
    }
}
