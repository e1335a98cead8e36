//! Responses and their comparison.

use crate::same::values;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use serde_json::Value;
use std::time::Duration;
use tidegate::{AppliedBand, Decision};

/// A response, as far as its frontend can express it.
#[derive(Debug)]
pub(super) struct FrontendReply {
    whole: Option<FullReply>,
    rls: Option<Rls>,
}

/// The response in Tidegate's own format.
#[derive(Debug)]
pub(super) struct FullReply {
    part: Part,
    /// `None` if the response has no descriptors.
    descriptors: Option<Vec<Part>>,
}

/// The result of a request or of one of its descriptors.
#[derive(Debug)]
struct Part {
    is_allowed: bool,
    is_unlimited: bool,
    told: Option<LimitReport>,
}

/// The report about a limit.
#[derive(Debug)]
struct LimitReport {
    limit: String,
    band: Option<String>,
    remaining: u64,
    /// `None` if it never passes.
    wait_ms: Option<u64>,
    reset_ms: u64,
}

/// The response in Envoy's format.
#[derive(Debug)]
pub(super) struct Rls {
    is_allowed: bool,
    statuses: Vec<Status>,
    retry_after_s: Option<u64>,
}

#[derive(Debug)]
struct Status {
    is_allowed: bool,
    /// Name, amount, and the number of the unit.
    limit: Option<(String, u64, i64)>,
    remaining: u64,
    reset_s: Option<u64>,
}

/// The allowed differences.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance {
    /// The time between the two requests.
    pub(super) passed_ms: u64,
    /// True if limits are decided one after the other: then the time between them selects which of
    /// two equal refusals is reported.
    pub(super) each_by_itself: bool,
}

// === impl Said ===

impl FrontendReply {
    pub(super) fn whole(whole: FullReply) -> Self {
        Self {
            whole: Some(whole),
            rls: None,
        }
    }

    pub(super) fn rls(rls: Rls) -> Self {
        Self {
            whole: None,
            rls: Some(rls),
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        let rls = self.rls.as_ref().is_none_or(|it| it.is_allowed);
        self.whole.as_ref().map_or(rls, |it| it.part.is_allowed)
    }

    /// Returns the difference to another response, if there is one.
    pub(super) fn differs(&self, other: &Self, may: Tolerance) -> Option<String> {
        let both = self.whole.as_ref().zip(other.whole.as_ref());
        let rls = self.rls.as_ref().zip(other.rls.as_ref());
        both.and_then(|(one, other)| one.differs(other, may))
            .or_else(|| rls.and_then(|(one, other)| one.differs(other, may)))
    }
}

/// Returns the library's decision in the common format.
pub(super) fn of_decision(decision: &Decision) -> FrontendReply {
    let whole = FullReply {
        part: Part {
            is_allowed: decision.is_allowed(),
            is_unlimited: false,
            told: decision.binding().map(|it| LimitReport::of(&it)),
        },
        descriptors: Some(
            (0..decision.descriptors())
                .map(|nth| Part {
                    is_allowed: decision.descriptor_allowed(nth),
                    is_unlimited: decision.descriptor_unlimited(nth),
                    told: decision.descriptor(nth).map(|it| LimitReport::of(&it)),
                })
                .collect(),
        ),
    };
    let wait = decision.binding().and_then(|it| it.retry_after());
    let rls = Rls {
        is_allowed: decision.is_allowed(),
        statuses: (0..decision.descriptors())
            .map(|nth| Status::of(decision, nth))
            .collect(),
        retry_after_s: wait.filter(|_| !decision.is_allowed()).map(seconds),
    };
    FrontendReply {
        whole: Some(whole),
        rls: Some(rls),
    }
}

// === impl Whole ===

impl FullReply {
    /// Reads a response of `/v1/check`.
    pub(super) fn read(json: &Value) -> Self {
        let descriptors = json["descriptors"].as_array();
        Self {
            part: Part::read(json),
            descriptors: Some(descriptors.into_iter().flatten().map(Part::read).collect()),
        }
    }

    /// Reads a reply of `TG.CHECK`, in RESP2.
    pub(super) fn of_reply(reply: &str) -> Self {
        assert!(reply.starts_with("*7\r\n"), "{reply}");
        let values = values(reply);
        assert_eq!(values[6], "store", "{reply}");
        let text = |nth: usize| Some(values[nth].clone()).filter(|it| it != "-1");
        let number = |nth: usize| text(nth).map(|it| it.parse().unwrap());
        let told = |limit| LimitReport {
            limit,
            band: text(2),
            remaining: number(3).unwrap(),
            wait_ms: number(4),
            reset_ms: number(5).unwrap(),
        };
        Self {
            part: Part {
                is_allowed: values[0] == "1",
                is_unlimited: false,
                told: text(1).map(told),
            },
            descriptors: None,
        }
    }

    fn differs(&self, other: &Self, may: Tolerance) -> Option<String> {
        let whole = self.part.differs(&other.part, may);
        whole.map(str::to_owned).or_else(|| {
            let (ours, theirs) = (self.descriptors.as_ref()?, other.descriptors.as_ref()?);
            if ours.len() != theirs.len() {
                return Some("descriptors".to_owned());
            }
            let mut each = ours.iter().zip(theirs).enumerate();
            each.find_map(|(nth, (one, other))| {
                let difference = one.differs(other, may)?;
                Some(format!("descriptors[{nth}].{difference}"))
            })
        })
    }
}

impl Part {
    fn read(json: &Value) -> Self {
        let told = |limit: &str| LimitReport {
            limit: limit.to_owned(),
            band: json["band"].as_str().map(str::to_owned),
            remaining: json["remaining"].as_u64().unwrap(),
            wait_ms: json["retry_after_ms"].as_u64(),
            reset_ms: json["reset_ms"].as_u64().unwrap(),
        };
        Self {
            is_allowed: json["allowed"].as_bool().unwrap(),
            is_unlimited: json["unlimited"] == true,
            told: json["limit"].as_str().map(told),
        }
    }

    fn differs(&self, other: &Self, may: Tolerance) -> Option<&'static str> {
        if (self.is_allowed, self.is_unlimited) != (other.is_allowed, other.is_unlimited) {
            return Some("allowed");
        }
        match (&self.told, &other.told) {
            (None, None) => None,
            (Some(one), Some(other)) => one.differs(other, may),
            _ => Some("limit"),
        }
    }
}

impl LimitReport {
    fn of(applied: &AppliedBand<'_>) -> Self {
        Self {
            limit: applied.limit().to_owned(),
            band: applied.band().map(str::to_owned),
            remaining: applied.remaining(),
            wait_ms: applied.retry_after().map(millis),
            reset_ms: millis(applied.reset_after()),
        }
    }

    fn differs(&self, other: &Self, may: Tolerance) -> Option<&'static str> {
        // Each is rounded up.
        let tolerance = may.passed_ms + 1;
        let is_as_long = is_near(self.wait_ms, other.wait_ms, tolerance);
        if (&self.limit, &self.band) != (&other.limit, &other.band) {
            let is_tie = may.each_by_itself && self.wait_ms != Some(0) && is_as_long;
            return (!is_tie).then_some("limit");
        }
        if self.remaining != other.remaining {
            return Some("remaining");
        }
        if !is_as_long {
            return Some("retry after");
        }
        let resets = (Some(self.reset_ms), Some(other.reset_ms));
        (!is_near(resets.0, resets.1, tolerance)).then_some("reset")
    }
}

// === impl Rls ===

impl Rls {
    /// Reads a gRPC message.
    pub(super) fn of_message(message: &RateLimitResponse) -> Self {
        let statuses = message.statuses.iter().map(|status| Status {
            is_allowed: is_ok(status.code().as_str_name()),
            limit: status.current_limit.as_ref().map(|limit| {
                let amount = limit.requests_per_unit.into();
                (limit.name.clone(), amount, limit.unit.into())
            }),
            remaining: status.limit_remaining.into(),
            reset_s: status
                .duration_until_reset
                .as_ref()
                .map(|it| it.seconds.unsigned_abs()),
        });
        let mut headers = message.response_headers_to_add.iter();
        let retry_after = headers.find(|it| it.key == "retry-after");
        Self {
            is_allowed: is_ok(message.overall_code().as_str_name()),
            statuses: statuses.collect(),
            retry_after_s: retry_after.map(|it| it.value.parse().unwrap()),
        }
    }

    /// Reads a response of `/json`.
    pub(super) fn read(http: u16, json: &Value) -> Self {
        let is_allowed = is_ok(json["overallCode"].as_str().unwrap());
        assert_eq!(http, if is_allowed { 200 } else { 429 }, "{json}");
        let headers = json["responseHeadersToAdd"].as_array();
        let mut headers = headers.into_iter().flatten();
        let retry_after = headers.find(|it| it["key"] == "retry-after");
        Self {
            is_allowed,
            statuses: json["statuses"]
                .as_array()
                .unwrap()
                .iter()
                .map(Status::read)
                .collect(),
            retry_after_s: retry_after.map(|it| it["value"].as_str().unwrap().parse().unwrap()),
        }
    }

    fn differs(&self, other: &Self, may: Tolerance) -> Option<String> {
        if self.is_allowed != other.is_allowed || self.statuses.len() != other.statuses.len() {
            return Some("overall code".to_owned());
        }
        // Each is rounded up.
        let tolerance = may.passed_ms.div_ceil(1_000) + 1;
        if !is_near(self.retry_after_s, other.retry_after_s, tolerance) {
            return Some("retry-after".to_owned());
        }
        let mut each = self.statuses.iter().zip(&other.statuses).enumerate();
        each.find_map(|(nth, (one, other))| {
            let is_told_alike = (&one.limit, one.remaining) == (&other.limit, other.remaining);
            let is_same = one.is_allowed == other.is_allowed
                && (is_told_alike || (may.each_by_itself && !one.is_allowed))
                && is_near(one.reset_s, other.reset_s, tolerance);
            (!is_same).then(|| format!("statuses[{nth}]"))
        })
    }
}

impl Status {
    /// Returns a descriptor's expected status by the documentation.
    fn of(decision: &Decision, nth: usize) -> Self {
        let is_allowed = decision.descriptor_allowed(nth);
        let Some(applied) = decision.descriptor(nth) else {
            let is_unlimited = decision.descriptor_unlimited(nth);
            return Self {
                is_allowed,
                limit: None,
                remaining: if is_unlimited { u32::MAX.into() } else { 0 },
                reset_s: None,
            };
        };
        let spoken = applied.header_names();
        let limit = spoken.map(|spoken| {
            let refills_s = spoken.window_max_s();
            let unit = match refills_s {
                _ if applied.period() != Duration::from_secs(refills_s) => 0,
                3_600 => 3,
                86_400 => 4,
                _ => 0,
            };
            (spoken.name().to_owned(), applied.capacity(), unit)
        });
        let reset_s = spoken.map(|spoken| match applied.retry_after() {
            _ if applied.is_allowed() => seconds(applied.reset_after()),
            Some(wait) => seconds(wait),
            None => spoken.window_max_s(),
        });
        Self {
            is_allowed,
            limit,
            remaining: applied.remaining(),
            reset_s,
        }
    }

    fn read(json: &Value) -> Self {
        let limit = json["currentLimit"].as_object().map(|limit| {
            let unit = match limit.get("unit").and_then(Value::as_str) {
                None | Some("UNKNOWN") => 0,
                Some("HOUR") => 3,
                Some("DAY") => 4,
                Some(other) => panic!("no limit here has the unit {other}"),
            };
            let name = limit["name"].as_str().unwrap().to_owned();
            // JSON omits a number of 0.
            let amount = limit.get("requestsPerUnit").and_then(Value::as_u64);
            (name, amount.unwrap_or(0), unit)
        });
        let reset = json["durationUntilReset"].as_str();
        Self {
            is_allowed: is_ok(json["code"].as_str().unwrap()),
            limit,
            remaining: json["limitRemaining"].as_u64().unwrap_or(0),
            reset_s: reset.map(|it| it.strip_suffix('s').unwrap().parse().unwrap()),
        }
    }
}

fn is_ok(code: &str) -> bool {
    assert!(matches!(code, "OK" | "OVER_LIMIT"), "{code}");
    code == "OK"
}

/// Returns true if two times differ by no more than the tolerance.
fn is_near(one: Option<u64>, other: Option<u64>, tolerance: u64) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) <= tolerance,
        (one, other) => one == other,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap()
}

fn seconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000_000)).unwrap()
}
