//! `routes`: the routes of the gateway.
//!
//! | module | contents |
//! |---|---|
//! | `upstream`, `url` | upstreams |
//! | `health` | health, ejection, timeouts |
//! | `rewrite` | headers that are set, added, removed |
//! | `policies` | the policies of routes, and those joined for them |
//! | `messages` | limits on WebSocket messages |
//! | `overlap` | routes that no request takes |

mod health;
mod messages;
mod overlap;
mod policies;
mod rewrite;
mod upstream;

mod url;

pub(crate) use url::parse as upstream_url;

use super::condition::{each, read_places};
use super::mode;
use crate::language::names::{DistinctNames, refuse_too_many};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{self, whole};
use crate::language::table::FieldReader;
use crate::language::words::{BALANCE, HOST_HEADER, REFUND, UNLIMITED};
use crate::syntax::NodeKind;
use crate::tables::ROUTES_MAX;
use crate::tables::route::ROUTE;
use crate::tables::route::{RETRIES_MAX, UPGRADES_MAX};
use overlap::RouteOverlap;
use policies::CarriedPolicies;
use std::ops::RangeInclusive;
use tidegate_policy::limit::Condition;
use tidegate_policy::policy::Policy;
use tidegate_policy::route::{RefundRule, Route, Routes};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::size;

/// The only upgrade whose messages the gateway can count.
const WEBSOCKET: &str = "websocket";

/// Reads `routes`. `written` is the section `policies`. The changes that routes require are applied to
/// `policies`.
pub(crate) fn read_all(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    written: Option<&ConfigValue<'_>>,
    policies: &mut Vec<Policy>,
) -> Routes {
    let items = reader.list(value);
    refuse_too_many(reader, value, items.len(), ROUTES_MAX);
    let mut plan = CarriedPolicies::new(reader, written);
    let mut names = DistinctNames::new("routes");
    let mut reach = RouteOverlap::default();
    let mut routes = Vec::new();
    for item in items.iter().take(ROUTES_MAX) {
        let Some(route) = route(reader, item, &mut names, &mut plan) else {
            continue;
        };
        // A disabled route takes no requests from later ones, and need not be reachable itself.
        if route.enabled {
            reach.add(reader, item, &route);
        }
        routes.push(route);
    }
    plan.carry_out(reader, value, policies);
    Routes::new(routes)
}

fn route(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    names: &mut DistinctNames,
    plan: &mut CarriedPolicies,
) -> Option<Route> {
    let fields = reader.fields(value, &ROUTE)?;
    let name = fields
        .get("name")
        .and_then(|value| names.read(reader, &value));
    let mode = mode::read(reader, &fields);
    let conditions = match fields.get("match") {
        Some(value) => read_places(reader, &value),
        None => Vec::new(),
    };
    let upstreams = match fields.get("upstreams") {
        Some(value) => upstream::read_all(reader, &value),
        None => Vec::new(),
    };
    let tls = upstream::tls(reader, &fields, &upstreams);
    let balance = reader.setting(&fields, "balance", |word| BALANCE.parse(word));
    let refund = reader.setting(&fields, "refund", |word| REFUND.parse(word));
    let refund = refund.unwrap_or_default();
    let policy = plan.policy(reader, &fields, refund, mode.mode);
    let host = reader.setting(&fields, "host", |word| HOST_HEADER.parse(word));
    let upgrades = upgrades(reader, &fields);
    let messages = messages::read(reader, &fields, plan, mode.mode);
    let retries = number(reader, &fields, "retries", 0..=RETRIES_MAX);
    let route = Route {
        name: name.unwrap_or_default(),
        enabled: mode.enabled,
        mode: mode.mode,
        patterns: patterns(&conditions),
        upstreams,
        tls,
        balance: balance.unwrap_or_default(),
        health: health::health(reader, &fields),
        eject: health::eject(reader, &fields),
        timeouts: health::timeouts(reader, &fields),
        connections: health::connections(reader, &fields),
        policy,
        refund,
        retries: retries.unwrap_or(1),
        body_bytes: body_bytes(reader, &fields),
        min_upload_rate: min_upload_rate(reader, &fields),
        host: host.unwrap_or_default(),
        strip_prefix: strip_prefix(reader, &fields, &conditions),
        request_headers: rewrite::read(reader, &fields, "request_headers"),
        response_headers: rewrite::read(reader, &fields, "response_headers"),
        pass_headers: rewrite::pass_headers(reader, &fields),
        upgrades,
        messages,
        conditions,
    };
    warn_about_settings_in_vain(reader, &fields, &route);
    Some(route)
}

/// Returns the paths of conditions as configured.
fn patterns(conditions: &[Condition]) -> Vec<String> {
    let path = |condition: &Condition| {
        let path = condition.path.as_ref();
        path.map_or("/", |path| path.as_str()).to_owned()
    };
    match conditions {
        [] => vec!["/".to_owned()],
        conditions => conditions.iter().map(path).collect(),
    }
}

fn body_bytes(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<u64> {
    let written = reader.setting(fields, "body_bytes", |text| match UNLIMITED.get(text) {
        Some(()) => Ok(None),
        None => size::parse(text).map(Some),
    });
    written.unwrap_or(Some(Route::BODY_BYTES))
}

fn min_upload_rate(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<u64> {
    let written = reader.setting(fields, "min_upload_rate", size::parse);
    let rate = written.unwrap_or(Route::MIN_UPLOAD_RATE);
    Some(rate).filter(|rate| *rate > 0)
}

fn strip_prefix(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    conditions: &[Condition],
) -> Option<String> {
    let value = fields.get("strip_prefix")?;
    let prefix = reader.parse(&value, |text| {
        let refused =
            || ConfigFault::new(format!("{} cannot be stripped", ConfigFault::quote(text)));
        if !text.starts_with('/') || text.contains(['*', '$', '?', '#']) {
            let help = "for example `/api`: whole path segments";
            return Err(refused().help(help));
        }
        url::prefix(text).map_err(|help| refused().help(help))
    })?;
    if prefix.is_empty() {
        let fault = ConfigFault::new("`strip_prefix: /` strips nothing").help("remove it");
        reader.warn(value.spot(), fault);
        return None;
    }
    let can_have = |condition: &Condition| {
        let path = condition.path.as_ref();
        path.is_none_or(|path| path.can_begin_with(&prefix))
    };
    if !conditions.is_empty() && !conditions.iter().any(can_have) {
        let message = format!(
            "no path of this route begins with {}",
            ConfigFault::quote(&prefix)
        );
        let help = "such paths are forwarded unchanged; use the prefix of a `path`";
        reader.warn(value.spot(), ConfigFault::new(message).help(help));
    }
    Some(prefix)
}

fn upgrades(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Vec<String> {
    let Some(value) = fields.get("upgrades") else {
        return vec![WEBSOCKET.to_owned()];
    };
    // An empty list means no upgrades.
    if matches!(&value.node.kind, NodeKind::List(items) if items.is_empty()) {
        return Vec::new();
    }
    let upgrades = each(reader, fields, "upgrades", |text| {
        let refused = |help: &str| {
            let message = format!("{} is not a supported upgrade", ConfigFault::quote(text));
            Err(ConfigFault::new(message).help(help))
        };
        match scalar::token(&text.to_ascii_lowercase()) {
            Some(token) if token == "h2c" => {
                refused("remove it: the gateway accepts HTTP/2 without an upgrade")
            }
            Some(token) => Ok(token),
            None => refused("for example `websocket`; [] for nothing"),
        }
    });
    if upgrades.len() > UPGRADES_MAX {
        let fault = ConfigFault::new(format!("a route has at most {UPGRADES_MAX} upgrades"));
        reader.error(value.key_spot(), fault);
    }
    upgrades
}

fn warn_about_settings_in_vain(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    route: &Route,
) {
    let says_none = fields.get("policy").is_some() && route.policy.is_none();
    if let (Some(value), true) = (fields.get("refund"), says_none && !reader.has_errors())
        && route.refund == RefundRule::Unreached
    {
        let fault = ConfigFault::new("`refund` has no effect: nothing is charged on this route");
        reader.warn(value.key_spot(), fault.help("name a policy, or remove it"));
    }
    let has_websocket = route.upgrades.iter().any(|it| it == WEBSOCKET);
    if let (Some(value), false) = (fields.get("messages"), has_websocket) {
        let fault = ConfigFault::new("`messages` has no effect: no connection becomes a WebSocket");
        reader.warn(
            value.key_spot(),
            fault.help("add `websocket` to `upgrades`, or remove it"),
        );
    }
}

/// Reads a whole number within a range.
fn number<T: TryFrom<u64>>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    range: RangeInclusive<u64>,
) -> Option<T> {
    let number = reader.setting(fields, name, |text| whole(text, &range))?;
    T::try_from(number).ok()
}
