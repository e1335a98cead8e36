//! Configurations with many limits, and requests that match one of them each.

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use tidegate::{Limiter, Request};

/// The number of limits per policy, if there are several policies.
const TOGETHER: usize = 10;

/// The number of clients.
const CLIENTS: usize = 64;

/// The number of paths in requests, for any number of limits: the buckets stay in the cache, so the
/// search for the limit is measured.
const ASKED: usize = 10;

/// Requests between two reads of the clock.
pub(crate) const CHUNK: usize = 256;

/// The layout of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Layout {
    /// All in one policy, distinguished by their paths.
    Path,
    /// All in one policy, distinguished by a header.
    Header,
    /// Ten per policy, which requests name.
    Policy,
}

pub(crate) const LAYOUTS: [(Layout, &str); 3] = [
    (Layout::Path, "one policy, by path"),
    (Layout::Header, "one policy, by header"),
    (Layout::Policy, "ten limits a policy"),
];

/// Returns a configuration with this many limits. Another `version` has other rates.
pub(crate) fn yaml(layout: Layout, limits: usize, version: usize) -> String {
    let mut text = "policies:\n".to_owned();
    for nth in 0..limits {
        let (policy, first) = match layout {
            Layout::Path | Layout::Header => (0, nth == 0),
            Layout::Policy => (nth / TOGETHER, nth % TOGETHER == 0),
        };
        if first {
            writeln!(text, "  - name: p{policy}\n    limits:").expect("writing to a string");
        }
        let matched = match layout {
            Layout::Header => format!("headers: {{ X-Tenant: t{nth} }}"),
            Layout::Path | Layout::Policy => format!("path: {}", pattern(nth)),
        };
        let amount = 1_000_000 + version;
        writeln!(
            text,
            "      - {{ name: l{nth}, match: {{ {matched} }}, key: ip, rate: {amount}/s }}"
        )
        .expect("writing to a string");
    }
    text
}

/// Returns a path pattern: some end in a wildcard, some contain one, some are exact, as in real
/// configurations.
fn pattern(nth: usize) -> String {
    match nth % 3 {
        0 => format!("/api/v1/r{nth}/**"),
        1 => format!("/api/v1/r{nth}/*"),
        _ => format!("/api/v1/r{nth}/items$"),
    }
}

/// A sequence of requests.
pub(crate) struct RequestSequence {
    layout: Layout,
    /// By number: the policy, the path and the value of the header.
    asked: Vec<(String, String, String)>,
    next: usize,
}

impl RequestSequence {
    pub(crate) fn new(layout: Layout, limits: usize) -> Self {
        let spread = (0..ASKED).map(|nth| nth * limits / ASKED);
        let asked = spread.map(|nth| {
            let policy = match layout {
                Layout::Path | Layout::Header => 0,
                Layout::Policy => nth / TOGETHER,
            };
            (
                format!("p{policy}"),
                format!("/api/v1/r{nth}/items"),
                format!("t{nth}"),
            )
        });
        Self {
            layout,
            asked: asked.collect(),
            next: 0,
        }
    }

    /// Decides some requests; returns how many passed by a limit.
    pub(crate) fn some(&mut self, limiter: &Limiter) -> usize {
        (0..CHUNK).filter(|_| self.next(limiter)).count()
    }

    /// Decides the next request; returns true if it passed by exactly one limit.
    #[inline]
    pub(crate) fn next(&mut self, limiter: &Limiter) -> bool {
        let nth = self.next;
        self.next = nth.wrapping_add(1);
        let Some((policy, path, tenant)) = self.asked.get(nth % ASKED) else {
            return false;
        };
        let client = u8::try_from(nth / ASKED % CLIENTS).unwrap_or(0);
        let headers = [("x-tenant", tenant.as_str())];
        let mut request = Request::new().policy(policy);
        request.ip = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, client)));
        match self.layout {
            Layout::Header => {
                request = request.path("/").headers(&headers);
            }
            Layout::Path | Layout::Policy => request = request.path(path),
        }
        let decision = limiter.check_now(&request);
        black_box(&decision)
            .as_ref()
            .is_ok_and(|it| it.is_allowed() && it.limit().is_some())
    }
}
