//! The cost of a decision does not depend on the number of limits.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;
use tidegate::{Limiter, Request};
use tokio::time::Instant;

const FEW: usize = 10;
const MANY: usize = 10_000;

/// The maximum ratio of the time of a decision with many limits to one with few. A linear search would take
/// thousands of times as long; the margin is for busy machines.
const TIMES_MAX: u32 = 4;

/// The number of rounds in which both are measured in turn; `DECISIONS` is the number of decisions in each.
const ROUNDS: usize = 21;
const DECISIONS: usize = 300;

/// The number of limits that requests use, spread over all of them.
const ASKED: usize = 10;

/// The property that distinguishes the limits.
#[derive(Clone, Copy, Debug)]
enum LimitDifference {
    Path,
    Header,
    /// Ten per policy, which requests name.
    Policy,
}

impl LimitDifference {
    fn limiter(self, limits: usize) -> Limiter {
        let mut text = "policies:\n".to_owned();
        for nth in 0..limits {
            if nth == 0 || matches!(self, Self::Policy) && nth.is_multiple_of(10) {
                writeln!(text, "  - name: p{}\n    limits:", nth / 10)
                    .expect("writing to a string");
            }
            let matched = match (self, nth % 3) {
                (Self::Header, _) => format!("headers: {{ X-Tenant: t{nth} }}"),
                (_, 0) => format!("path: /api/r{nth}/**"),
                (_, 1) => format!("path: /api/r{nth}/*"),
                _ => format!("path: /api/r{nth}/items$"),
            };
            writeln!(
                text,
                "      - {{ name: l{nth}, match: {{ {matched} }}, key: ip, rate: 1000000/s }}"
            )
            .expect("writing to a string");
        }
        Limiter::from_yaml(&text).expect("a valid config")
    }

    /// Sends all measured requests, and returns the time that took.
    fn ask(self, limiter: &Limiter, limits: usize) -> Duration {
        let asked: Vec<[String; 4]> = (0..ASKED)
            .map(|nth| nth * limits / ASKED)
            .map(|nth| {
                let policy = if let Self::Policy = self { nth / 10 } else { 0 };
                [
                    format!("p{policy}"),
                    format!("/api/r{nth}/items"),
                    format!("t{nth}"),
                    format!("l{nth}"),
                ]
            })
            .collect();
        let ip = "192.0.2.1".parse().expect("an address");
        let began = Instant::now();
        for nth in 0..DECISIONS {
            let [policy, path, tenant, limit] = &asked[nth % ASKED];
            let headers = [("x-tenant", tenant.as_str())];
            let request = Request::new().policy(policy).path(path).ip(ip);
            let decision = limiter.check_now(&request.headers(&headers));
            let decision = black_box(decision).expect("a decision");
            assert_eq!(decision.limit(), Some(limit.as_str()));
        }
        began.elapsed()
    }
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn a_decision_takes_as_long_among_ten_thousand_limits_as_among_ten() {
    for apart in [
        LimitDifference::Path,
        LimitDifference::Header,
        LimitDifference::Policy,
    ] {
        let (few, many) = (apart.limiter(FEW), apart.limiter(MANY));
        let (mut by_few, mut by_many) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            // In turn, so that other load on the machine affects both alike.
            by_few.push(apart.ask(&few, FEW));
            by_many.push(apart.ask(&many, MANY));
        }
        let (by_few, by_many) = (median(by_few), median(by_many));
        assert!(
            by_many <= by_few * TIMES_MAX,
            "{apart:?}: {DECISIONS} take {by_many:?} among {MANY} limits, and {by_few:?} among {FEW}"
        );
    }
}
