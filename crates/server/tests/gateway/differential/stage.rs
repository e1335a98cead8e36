//! Both proxies in front of one upstream, and the replay of a case.

use super::difference::DifferenceReason;
use super::view;
use crate::kit::client::{Client, method};
use crate::kit::gate::{self, Gate};
use crate::kit::nginx::Nginx;
use crate::kit::{Answer, Upstream, request};
use std::net::SocketAddr;

/// A message to send through both.
pub(super) struct Case {
    name: &'static str,
    steps: Vec<Step>,
    answer: Answer,
    known: Vec<(DifferenceReason, Vec<String>)>,
    /// True if only the verdict is compared, because the error texts differ.
    is_verdict: bool,
    /// True if the connection ends in the middle of a request.
    is_unfinished: bool,
}

enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits for an interim response with this status.
    Interim(u16),
    /// Reads the response to a request of this method.
    Reply(String),
}

/// Returns a case that sends one request and reads its response.
pub(super) fn case(name: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    steps(name).sends(&bytes).reads(&method(bytes.as_ref()))
}

/// Returns a case without steps.
pub(super) fn steps(name: &'static str) -> Case {
    Case {
        name,
        steps: Vec::new(),
        answer: Answer::default(),
        known: Vec::new(),
        is_verdict: false,
        is_unfinished: false,
    }
}

/// Returns a case that compares only whether this request passes.
pub(super) fn verdict(name: &'static str, bytes: impl AsRef<[u8]>) -> Case {
    Case {
        is_verdict: true,
        ..case(name, bytes)
    }
}

impl Case {
    /// Adds a step that sends bytes.
    pub(super) fn sends(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Send(bytes.as_ref().to_vec()));
        self
    }

    /// Adds a step that reads an interim response.
    pub(super) fn hears(mut self, status: u16) -> Self {
        self.steps.push(Step::Interim(status));
        self
    }

    /// Adds a step that reads a response.
    pub(super) fn reads(mut self, method: &str) -> Self {
        self.steps.push(Step::Reply(method.to_owned()));
        self
    }

    /// Sets the upstream's response.
    pub(super) fn answered(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// Marks a case whose last request is incomplete.
    pub(super) fn unfinished(mut self) -> Self {
        self.is_unfinished = true;
        self
    }

    /// Expects a difference in these lines, for this reason: `-` are nginx's lines, `+` are
    /// Tidegate's.
    pub(super) fn differs(mut self, why: DifferenceReason, lines: &[&str]) -> Self {
        let lines = lines.iter().map(|&line| line.to_owned());
        self.known.push((why, lines.collect()));
        self
    }
}

/// Both proxies in front of one upstream.
struct Stage {
    upstream: Upstream,
    nginx: Nginx,
    gate: Gate,
}

/// Plays all cases, and fails with every unexpected difference.
pub(super) async fn play(cases: Vec<Case>) {
    let upstream = Upstream::start().await;
    let Some(nginx) = Nginx::start(upstream.address) else {
        return;
    };
    let url = format!("http://{}", upstream.address);
    let route = format!("{{ name: all, upstreams: ['{url}'], policy: none, upgrades: [chat] }}");
    let config = gate::with_lenient_paths(&gate::config(&route, "rate: 1/s"));
    // nginx trusts no proxy.
    let config = format!("{config}client: {{ trusted_proxies: [192.0.2.1] }}\n");
    let gate = Gate::start(&config).await;
    let stage = Stage {
        upstream,
        nginx,
        gate,
    };
    let mut found = Vec::new();
    for case in cases {
        found.extend(stage.play(&case).await);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

impl Stage {
    /// Returns the failures of a case.
    async fn play(&self, case: &Case) -> Option<String> {
        let theirs = self.through(self.nginx.address, case).await;
        let ours = self.through(self.gate.address, case).await;
        let only = |a: &[String], b: &[String], sign: &str| -> Vec<String> {
            let only = a.iter().filter(|line| !b.contains(line));
            only.map(|line| format!("{sign} {line}")).collect()
        };
        let mut differs = only(&theirs, &ours, "-");
        differs.extend(only(&ours, &theirs, "+"));
        let known: Vec<&String> = case.known.iter().flat_map(|(_, lines)| lines).collect();
        let new = differs.iter().filter(|line| !known.contains(line));
        let gone = known.iter().filter(|line| !differs.contains(line));
        let mut found: Vec<String> = new.map(|line| format!("  {line}")).collect();
        found.extend(gone.map(|line| format!("  no longer: {line}")));
        let reasons = case.known.iter().map(|(why, _)| why.text());
        let reasons: Vec<_> = reasons.collect();
        (!found.is_empty()).then(|| {
            let found = found.join("\n");
            format!("{}, known for {reasons:?}:\n{found}", case.name)
        })
    }

    /// Returns what both ends saw of a case through the proxy at `address`.
    async fn through(&self, address: SocketAddr, case: &Case) -> Vec<String> {
        self.upstream.answers(case.answer.clone());
        let mut client = Client::connect(address).await;
        let mut replies = Vec::new();
        let mut interim = Vec::new();
        for step in &case.steps {
            match step {
                // A proxy may close before it has received everything.
                Step::Send(bytes) => drop(client.try_send(bytes).await),
                Step::Interim(status) => {
                    let head = client.head().await;
                    assert_eq!(head.status(), *status, "{}: {head:?}", case.name);
                    interim.push(head.status());
                }
                Step::Reply(method) => match client.try_reply(method).await {
                    Ok(Some(mut reply)) => {
                        reply.interim.splice(0..0, interim.drain(..));
                        replies.push(reply);
                    }
                    ended => {
                        let mut lines = view::requests(&self.upstream.seen());
                        lines.extend(view::replies(&replies));
                        let ended = ended.map(drop).map_err(|error| error.kind());
                        lines.push(format!("client: no answer, {ended:?}"));
                        return lines;
                    }
                },
            }
        }
        let seen = self.upstream.seen();
        if let (true, [reply]) = (case.is_verdict, &*replies) {
            return vec![view::verdict(&seen, reply)];
        }
        let mut lines = view::requests(&seen);
        lines.extend(view::replies(&replies));
        if let Some(last) = replies.last().filter(|_| !case.is_unfinished) {
            lines.push(self.aftermath(client, last.status(), last.closes()).await);
        }
        lines
    }

    /// Returns whether the connection closes as the last response announced.
    async fn aftermath(&self, mut client: Client, status: u16, closes: bool) -> String {
        let truth = if status == 101 {
            client.send("something else").await;
            let repeated = client.messages.exactly(14).await.unwrap();
            assert_eq!(repeated, b"something else");
            "what follows is another protocol"
        } else if closes {
            assert!(
                client.is_closed().await,
                "announced a close, but stays open"
            );
            "closed in the end"
        } else {
            self.upstream.answers(Answer::default());
            let reply = client.ask(request("GET", "/after", &[])).await;
            assert_eq!(reply.text(), "GET /after");
            self.upstream.seen();
            "goes on in the end"
        };
        truth.to_owned()
    }
}
