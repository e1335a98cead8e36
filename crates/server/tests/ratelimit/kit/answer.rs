//! What is left of an answer when the documented differences are taken out.

use serde_json::Value;

/// What remains of a descriptor that nothing limits.
const UNLIMITED: u64 = 4_294_967_295;

/// Limits in shadow are named so here: they are told by one of the two alone.
const SHADOW: &str = "shadow";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Ok,
    Over,
}

/// What both say.
#[derive(Debug)]
pub(crate) struct Answer {
    http: u16,
    pub(crate) overall: Code,
    statuses: Vec<Status>,
}

#[derive(Debug)]
struct Status {
    code: Code,
    /// How many, in which unit.
    limit: Option<(u64, String)>,
    remaining: Option<u64>,
    is_unlimited: bool,
}

impl Answer {
    /// Whether Tidegate, with this answer, says the same.
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
        // Of what is merely let pass, one says that nothing remains, the other everything.
        let is_as_unlimited = ours.is_unlimited || !self.is_unlimited;
        (self.code, &self.limit, self.remaining) == (ours.code, &ours.limit, ours.remaining)
            && is_as_unlimited
    }

    fn read(json: &Value) -> Self {
        let code = code(&json["code"]);
        // Numbers of 0 are left out.
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
            // Of a refused status one says 0, the other what remains.
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
