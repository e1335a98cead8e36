//! `TG.CHECK policy [field value]…`: the same check as `POST /v1/check`, without JSON.

use super::parse::RespCommand;
use super::reply::{Replies, RespVersion};
use crate::decider::{AskTerms, CheckAttempt, CheckOutcome, Decider, PendingCheck, RefusalLogging};
use crate::wire::answer::{barred_ms, millis};
use crate::wire::fault::quote;
use crate::wire::question::{JsonQuestion, PAIRS_MAX, QuestionDescriptors};
use std::borrow::Cow;
use std::sync::Arc;
use tidegate::{AppliedBand, CheckError, CostMap, Decision, Rules, SkippedBand, Store};
use tidegate_telemetry::traces::UNTRACED;

const FIELDS: &str =
    "ip, user, api_key, method, host, path, route, cost, descriptors, header:NAME, attr:NAME";

/// The field of `TG.ACQUIRE` for the time of its permits.
const TTL: &str = "ttl_ms";

/// The only field whose value is JSON: a command has no form for nested lists.
const DESCRIPTORS: &str = "descriptors";

/// Parses a check. An empty policy stands for the first. Errors have the same text as in the HTTP API.
pub(super) fn read(command: RespCommand<'_>) -> Result<JsonQuestion<'_>, String> {
    let question = read_acquiring(command)?;
    if question.ttl_ms.is_some() {
        return Err(format!("ERR {TTL}: only for TG.ACQUIRE"));
    }
    Ok(question)
}

/// Parses a check like [`read`], which may have a `ttl_ms`.
pub(super) fn read_acquiring(command: RespCommand<'_>) -> Result<JsonQuestion<'_>, String> {
    if !command.len().is_multiple_of(2) {
        let name = String::from_utf8_lossy(command.word(0)).to_lowercase();
        return Err(format!(
            "ERR wrong number of arguments for '{name}' command"
        ));
    }
    let mut question = JsonQuestion::default();
    let mut words = command.words().skip(1);
    let policy = text("policy", words.next().unwrap_or_default())?;
    question.policy = (!policy.is_empty()).then_some(policy);
    let (mut pairs, mut described) = (0_usize, None);
    while let Some((name, value)) = words.next().zip(words.next()) {
        pairs = pairs.saturating_add(1);
        if pairs > PAIRS_MAX {
            return Err(format!("ERR more than {PAIRS_MAX} fields"));
        }
        if name.eq_ignore_ascii_case(DESCRIPTORS.as_bytes()) {
            set_once(&mut described, DESCRIPTORS, value)?;
        } else {
            set(&mut question, name, value)?;
        }
    }
    if let Some(json) = described {
        question.described = descriptors(json)?;
    }
    Ok(question)
}

fn set<'a>(question: &mut JsonQuestion<'a>, name: &'a [u8], value: &'a [u8]) -> Result<(), String> {
    if let Some(header) = after(name, b"header:") {
        let header = text("header", header)?;
        let value = text(&format!("header:{header}"), value)?;
        question.headers.push((header, value));
        return Ok(());
    }
    if let Some(attribute) = after(name, b"attr:") {
        let attribute = text("attr", attribute)?;
        if question.attributes.iter().any(|(it, _)| *it == attribute) {
            return Err(format!("ERR attr:{attribute}: duplicate attribute"));
        }
        let value = text(&format!("attr:{attribute}"), value)?;
        question.attributes.push((attribute, value));
        return Ok(());
    }
    let lower = name.to_ascii_lowercase();
    let field = std::str::from_utf8(&lower).unwrap_or_default();
    let place = match field {
        "ip" => return set_once(&mut question.ip, field, address(value)?),
        "cost" => return set_once(&mut question.cost, field, cost(value)?),
        TTL => return set_once(&mut question.ttl_ms, field, ttl(value)?),
        "user" => &mut question.user,
        "api_key" => &mut question.api_key,
        "method" => &mut question.method,
        "host" => &mut question.host,
        "path" => &mut question.path,
        "route" => &mut question.route,
        _ => {
            let name = quote(&String::from_utf8_lossy(name));
            return Err(format!("ERR unknown field {name}; expected {FIELDS}"));
        }
    };
    let value = text(field, value)?;
    set_once(place, field, value)
}

fn set_once<T>(place: &mut Option<T>, field: &str, value: T) -> Result<(), String> {
    if place.is_some() {
        return Err(format!("ERR {field}: duplicate field"));
    }
    *place = Some(value);
    Ok(())
}

/// Returns the text after `prefix`, which is case-insensitive.
fn after<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn text<'a>(field: &str, value: &'a [u8]) -> Result<Cow<'a, str>, String> {
    match std::str::from_utf8(value) {
        Ok(value) => Ok(Cow::Borrowed(value)),
        Err(_) => Err(format!("ERR {field}: not valid UTF-8")),
    }
}

fn address(value: &[u8]) -> Result<std::net::IpAddr, String> {
    let value = text("ip", value)?;
    let address = value.parse();
    address.map_err(|_| format!("ERR ip: {} is not an IP address", quote(&value)))
}

/// Parses a time in milliseconds.
pub(super) fn ttl(value: &[u8]) -> Result<u64, String> {
    let value = text(TTL, value)?;
    let is_whole = value.bytes().all(|byte| byte.is_ascii_digit());
    let ttl_ms = value.parse().ok().filter(|ttl_ms| is_whole && *ttl_ms > 0);
    ttl_ms.ok_or_else(|| {
        let found = quote(&value);
        format!("ERR {TTL}: expected a whole number of milliseconds, at least 1, found {found}")
    })
}

/// Parses a number, or units such as `tokens=800,bytes=9`.
fn cost<'a>(value: &[u8]) -> Result<CostMap<'a>, String> {
    let value = text("cost", value)?;
    if value.contains('=') {
        return CostMap::parse(&value).map_err(|fault| format!("ERR cost: {fault}"));
    }
    let is_whole = value.bytes().all(|byte| byte.is_ascii_digit());
    let cost = value.parse().ok().filter(|_| is_whole);
    cost.map(CostMap::Number)
        .ok_or_else(|| format!("ERR cost: expected a whole number, found {}", quote(&value)))
}

/// Parses descriptors, within the bounds that a body has. A JSON error gives the character position,
/// because the effect of a shell on quotes is hard to see.
fn descriptors(json: &[u8]) -> Result<QuestionDescriptors<'_>, String> {
    QuestionDescriptors::parse(json).map_err(|fault| {
        let column = fault.column(json);
        let fault = fault.within(DESCRIPTORS);
        format!("ERR {fault} (character {column})")
    })
}

/// Decides a check by its fields, and by the headers and the path in it if a field is missing, and writes
/// the decision. Returns the check if it has to wait, or if it `is_behind` one that waits.
pub(super) fn ask<S: Store>(
    decider: &Decider<S>,
    rules: &Arc<Rules>,
    (question, is_behind): (&JsonQuestion<'_>, bool),
    replies: &mut Replies,
) -> Option<PendingCheck<S>> {
    let tell = |outcome: CheckOutcome<'_>| write(outcome, replies);
    question.identified(rules.client(), |request, token_refused| {
        let terms = AskTerms {
            is_behind,
            ..AskTerms::pass(&UNTRACED, RefusalLogging::Here, token_refused)
        };
        match decider.attempt(rules, request, terms, tell) {
            CheckAttempt::Done(()) => None,
            CheckAttempt::Pending(pending, _) => Some(pending),
        }
    })
}

/// Writes a decision: in RESP3 a map with the names of the JSON form, in RESP2 their values in that
/// order.
pub(super) fn write(outcome: CheckOutcome<'_>, replies: &mut Replies) {
    let decision = match outcome {
        Ok(decision) => decision,
        Err(error) => return write_error(error, replies),
    };
    let is_resp3 = replies.protocol == RespVersion::Resp3;
    let name = |name: &str, replies: &mut Replies| {
        if is_resp3 {
            replies.bulk(name);
        }
    };
    let mut fields = if decision.reports_reason() { 9 } else { 7 };
    let binding = decision.binding();
    let unasked = decision.skipped_binding();
    // Guards add a reason. The unit comes last: the places of the others do not depend on it.
    let unit = unit(binding.as_ref(), unasked.as_ref());
    fields += usize::from(unit.is_some());
    if is_resp3 {
        replies.map(fields);
    } else {
        replies.array(fields);
    }
    name("allowed", replies);
    replies.boolean(decision.is_allowed());
    name("limit", replies);
    let limit = binding.as_ref().map(AppliedBand::limit);
    text_or_null(limit.or(unasked.as_ref().map(SkippedBand::limit)), replies);
    name("band", replies);
    let band = binding.as_ref().and_then(AppliedBand::band);
    text_or_null(
        band.or(unasked.as_ref().and_then(SkippedBand::band)),
        replies,
    );
    name("remaining", replies);
    match &binding {
        Some(binding) => replies.natural(binding.remaining()),
        None => absent(replies),
    }
    name("retry_after_ms", replies);
    write_retry(decision, binding.as_ref(), replies);
    name("reset_ms", replies);
    match (&binding, unasked.map(|it| it.reset_after())) {
        (Some(binding), _) => replies.natural(millis(binding.reset_after())),
        (None, Some(Some(reset))) => replies.natural(millis(reset)),
        (None, Some(None)) => absent(replies),
        (None, None) => replies.natural(0),
    }
    name("decided_by", replies);
    replies.bulk(decision.decided_by().as_str());
    if decision.reports_reason() {
        name("reason", replies);
        replies.bulk(decision.reason().as_str());
        name("guard", replies);
        text_or_null(decision.guard().map(|it| it.name.as_str()), replies);
    }
    if let Some(unit) = unit {
        name("unit", replies);
        replies.bulk(unit);
    }
}

/// Returns the unit of the reported band, unless it is requests.
fn unit<'d>(
    binding: Option<&AppliedBand<'d>>,
    unasked: Option<&SkippedBand<'d>>,
) -> Option<&'d str> {
    let unit = binding.and_then(AppliedBand::unit);
    unit.or(unasked.and_then(SkippedBand::unit))
}

/// Writes the time until a retry can succeed: until the band has room, or until the ban ends. No time is
/// long enough for a cost above the limit and for a permanent ban.
fn write_retry(decision: &Decision, binding: Option<&AppliedBand<'_>>, replies: &mut Replies) {
    let retry_ms = match binding {
        Some(binding) => binding.wait().as_millis(),
        None if decision.is_denied_by_guard() => barred_ms(decision),
        None => Some(0),
    };
    match retry_ms {
        Some(retry_ms) => replies.natural(retry_ms),
        None => absent(replies),
    }
}

pub(super) fn text_or_null(text: Option<&str>, replies: &mut Replies) {
    match text {
        Some(text) => replies.bulk(text),
        None => replies.null(),
    }
}

/// Writes a missing number: null, or −1 in a protocol without one for numbers.
pub(super) fn absent(replies: &mut Replies) {
    match replies.protocol {
        RespVersion::Resp2 => replies.integer(-1),
        RespVersion::Resp3 => replies.null(),
    }
}

/// Writes the error of a check without a decision. It reveals no details of the store.
pub(super) fn write_error(error: &CheckError, replies: &mut Replies) {
    match error {
        CheckError::Store(_) => replies.error("TRYAGAIN the store timed out"),
        error => replies.error(format!("ERR {error}")),
    }
}
