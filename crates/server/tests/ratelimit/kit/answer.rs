//! A response without the documented differences.

use serde_json::Value;

/// The remaining units of an unlimited descriptor.
const UNLIMITED: u64 = 4_294_967_295;

/// The name of limits in shadow mode: only one of the two reports them.
const SHADOW: &str = "shadow";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Ok,
    Over,
}

/// The common part of both responses.
#[derive(Debug)]
pub(crate) struct Answer {
    http: u16,
    pub(crate) overall: Code,
    statuses: Vec<Status>,
}

#[derive(Debug)]
struct Status {
    code: Code,
    /// Amount and unit.
    limit: Option<(u64, String)>,
    remaining: Option<u64>,
    is_unlimited: bool,
}

impl Answer {
    /// Returns true if Tidegate's response is equivalent.
    pub(crate) fn is_also(&self, ours: &Self) -> bool {
        let statuses = || self.statuses.iter().zip(&ours.statuses);
        (self.http, self.overall, self.statuses.len())
            == (ours.http, ours.overall, ours.statuses.len())
            && statuses().all(|(theirs, ours)| theirs.is_also(ours))
    }

    pub(crate) fn read(http: u16, body: &str) -> Self {
        let json: Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{http} {error}: {body}"));
        let statuses = json["statuses"].as_array();
        Self {
            http,
            overall: code(&json["overallCode"]),
            statuses: statuses
                .unwrap_or_else(|| panic!("no statuses: {body}"))
                .iter()
                .map(Status::read)
                .collect(),
        }
    }
}

impl Status {
    fn is_also(&self, ours: &Self) -> bool {
        // For an unlimited descriptor, one reports that nothing remains, the other everything.
        let is_as_unlimited = ours.is_unlimited || !self.is_unlimited;
        (self.code, &self.limit, self.remaining) == (ours.code, &ours.limit, ours.remaining)
            && is_as_unlimited
    }

    fn read(json: &Value) -> Self {
        let code = code(&json["code"]);
        // JSON omits numbers of 0.
        let number = |json: &Value| json.as_u64().unwrap_or(0);
        let limit = &json["currentLimit"];
        let remaining = number(&json["limitRemaining"]);
        if limit.is_null() || limit["name"].as_str().is_some_and(is_shadow) {
            return Self {
                code,
                limit: None,
                remaining: None,
                is_unlimited: remaining == UNLIMITED,
            };
        }
        let unit = limit["unit"].as_str().unwrap_or("UNKNOWN").to_owned();
        Self {
            code,
            limit: Some((number(&limit["requestsPerUnit"]), unit)),
            // For a refused status one reports 0, the other the remaining units.
            remaining: Some(remaining).filter(|_| code == Code::Ok),
            is_unlimited: false,
        }
    }
}

fn is_shadow(name: &str) -> bool {
    name.starts_with(SHADOW)
}

fn code(json: &Value) -> Code {
    match json.as_str() {
        Some("OK") => Code::Ok,
        Some("OVER_LIMIT") => Code::Over,
        _ => panic!("no code: {json}"),
    }
}
