//! Responses: presets, and layered settings.

use crate::good::everything;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_policy::respond::{
    Dialect, LimitHeaderValue, NameVisibility, Profile, ResetFormat, Respond, XField,
};
use tidegate_policy::{AnswerReason, Policy};

fn policy(text: &str) -> Policy {
    let config = Config::parse(text, "x", &NoEnvironment).unwrap_or_else(|e| panic!("{e}"));
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    config.policies.into_iter().next().unwrap()
}

fn respond(settings: &str) -> Respond {
    let limits = "limits: [{ name: l, rate: 1/s }]";
    let of_all = format!("respond: {settings}\npolicies: [{{ name: p, {limits} }}]");
    let of_policy = format!("policies: [{{ name: p, respond: {settings}, {limits} }}]");
    let respond = policy(&of_all).respond().clone();
    assert_eq!(&respond, policy(&of_policy).respond());
    respond
}

#[test]
fn an_absent_respond_section_is_the_default() {
    let plain = policy("policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]");
    assert_eq!(plain.respond(), &Respond::default());
    assert_eq!(respond("{ profile: default }"), Respond::default());
    assert_eq!(plain.respond().correlation, "x-correlation-id");
    assert_eq!(plain.respond().names, NameVisibility::Shown);
    assert!(plain.respond().retry_after);
    assert!(plain.limits[0].refusal.is_none());
}

#[test]
fn every_profile_can_be_written_as_single_fields() {
    for (profile, settings) in [
        (
            Profile::Default,
            r#"{ headers: [x-ratelimit, draft-11], content_type: application/problem+json,
            body: '{"type":"{type}","title":"{title}","status":{status},"detail":"{detail}","correlationId":"{correlation_id}","violated-policies":{violated_policies}}' }"#,
        ),
        (
            Profile::Gateway,
            r#"{ headers: x-ratelimit, fields: [limit, remaining, reset, type], limit: per-second,
            type: "https://api.gateway/errors/rate-limit-exceeded",
            message: "Rate limit exceeded. Try again in {retry_after} seconds.", content_type: application/json,
            body: '{"type":"{type}","title":"{title}","status":{status},"detail":"{detail}","correlationId":"{correlation_id}"}' }"#,
        ),
        (
            Profile::Collector,
            r#"{ headers: [], status: 402, content_type: application/json,
            body: '{"code":{status},"error":true,"message":"{message}"}',
            blocked: { message: Project has exceeded the events limit }, blacklisted: { status: 429 } }"#,
        ),
        (
            Profile::TraefikPlugin,
            r#"{ headers: [], content_type: application/json,
            body: '{"status_code":{status},"message":"{message}"}' }"#,
        ),
        (
            Profile::Adr,
            r#"{ headers: [x-ratelimit], reset: rfc3339, content_type: application/json,
            message: you have reached the maximum number of requests or actions allowed within a certain time frame,
            body: '{"error":"{title}","message":"{message}","timestamp":"{now_rfc3339}"}' }"#,
        ),
        (
            Profile::Fluxgate,
            r#"{ headers: [x-ratelimit], fields: remaining, message: Rate limit exceeded, content_type: application/json,
            body: '{"error":"{message}","retryAfter":{retry_after}}' }"#,
        ),
    ] {
        let (name, _) = Profile::ALL.iter().find(|(_, it)| *it == profile).unwrap();
        let preset = Respond::of(profile);
        assert_eq!(respond(settings), preset, "{name}");
        assert_eq!(respond(&format!("{{ profile: {name} }}")), preset, "{name}");
    }
}

#[test]
fn policies_and_limits_override_respond_field_by_field() {
    let policy = policy(
        "
respond: { correlation: X-Trace-ID, headers: [draft-03], status: 403, message: No }
policies:
  - name: p
    respond: { status: 402, retry_after: false }
    limits:
      - { name: a, rate: 1/s }
      - { name: b, rate: 1/s, respond: { content_type: text/plain, body: '{message}' } }
",
    );
    let respond = policy.respond();
    assert_eq!(respond.correlation, "x-trace-id");
    assert_eq!(respond.headers, [Dialect::Draft03]);
    assert_eq!((respond.refusal.status, respond.retry_after), (402, false));
    assert!(policy.limits[0].refusal.is_none());
    let refusal = policy.limits[1].refusal.as_ref().unwrap();
    assert_eq!(refusal.status, 402);
    assert_eq!(refusal.content_type, "text/plain");
    assert_eq!(refusal.message.as_ref().unwrap().as_str(), "No");
}

#[test]
fn guard_refusals_look_like_others_without_limit_details() {
    let policy = policy(
        "
respond: { status: 403, message: 'Slow down, {retry_after}', blocked: { status: 402 } }
policies:
  - name: p
    respond: { content_type: text/plain, body: '{status} {message}', blacklisted: { message: Go away } }
    limits: [{ name: a, rate: 1/s }]
",
    );
    let respond = policy.respond();
    let blocked = respond.refusal_for(AnswerReason::Blocked);
    assert_eq!((blocked.status, blocked.message.as_ref()), (402, None));
    assert_eq!(blocked.body.as_str(), "{status} {message}");
    let blacklisted = respond.refusal_for(AnswerReason::Blacklisted);
    assert_eq!(blacklisted.status, 403);
    assert_eq!(blacklisted.message.as_ref().unwrap().as_str(), "Go away");
    assert_eq!(
        respond.refusal_for(AnswerReason::Limited),
        &*respond.refusal
    );
}

#[test]
fn guards_do_not_use_a_body_written_for_limits() {
    let fixed = respond("{ content_type: text/plain, body: Too fast }");
    assert_eq!(fixed.refusal.body.as_str(), "Too fast");
    assert_eq!(fixed.blocked.body, Respond::default().refusal.body);
    assert_eq!(fixed.blocked.content_type, "application/problem+json");
    let own = respond(
        "{ content_type: text/plain, body: Too fast, blocked: { content_type: text/plain, body: No } }",
    );
    assert_eq!(own.blocked.body.as_str(), "No");
}

#[test]
fn another_profile_resets_the_guard_settings_of_the_previous_one() {
    let policy = policy(
        "
respond: { profile: collector }
policies:
  - { name: p, respond: { profile: default }, limits: [{ name: a, rate: 1/s }] }
",
    );
    let respond = policy.respond();
    assert_eq!(
        (respond.blocked.status, respond.blocked.message.as_ref()),
        (429, None)
    );
}

#[test]
fn a_profile_replaces_only_the_fields_it_sets() {
    let policy = policy(
        "
respond: { headers: [draft-03], status: 403, message: No, correlation: X-Trace-ID, names: hidden, retry_after: false }
policies:
  - name: p
    respond: { profile: collector, status: 429 }
    limits: [{ name: a, rate: 1/s }]
",
    );
    let respond = policy.respond();
    assert!(respond.headers.is_empty());
    assert_eq!(
        (respond.refusal.status, &respond.refusal.message),
        (429, &None)
    );
    assert_eq!(respond.correlation, "x-trace-id");
    assert_eq!(
        (respond.names, respond.retry_after),
        (NameVisibility::Hidden, false)
    );
}

#[test]
fn every_field_of_respond_is_parsed() {
    let config = everything();
    let all = config.policy(Some("routes")).unwrap().respond();
    let dialects = [Dialect::XRateLimit, Dialect::Draft03, Dialect::Draft11];
    assert_eq!(all.headers, dialects);
    let fields = [
        XField::Limit,
        XField::Remaining,
        XField::Reset,
        XField::Type,
    ];
    assert_eq!(all.x_ratelimit.fields, fields);
    assert_eq!(all.x_ratelimit.limit, LimitHeaderValue::PerSecond);
    assert_eq!(all.x_ratelimit.reset, ResetFormat::Delta);
    assert_eq!(all.refusal.status, 430);
    assert_eq!(all.correlation, "x-request-id");
    assert_eq!(
        all.refusal.type_uri.as_deref(),
        Some("https://example.com/errors/limit")
    );

    let api = config.policy(Some("api")).unwrap();
    assert_eq!(api.respond().headers, [Dialect::XRateLimit]);
    assert_eq!(api.respond().names, NameVisibility::Hidden);
    assert_eq!(api.respond().correlation, "x-request-id");
    let own = api.limits[0].refusal.as_ref().unwrap();
    assert_eq!((own.status, own.content_type.as_str()), (402, "text/html"));
    assert_eq!(
        own.body.as_str(),
        "<a href={type}>{message}</a> {correlation_id}"
    );
}

fn names(text: &str) -> Vec<String> {
    let policy = policy(text);
    let limits = policy.limits.iter().enumerate();
    limits
        .flat_map(|(nth, limit)| (0..limit.bands.len()).map(move |band| (nth, band)))
        .map(|(limit, band)| {
            policy
                .band_header_names(limit, band)
                .unwrap()
                .draft_11(0)
                .into_owned()
        })
        .collect()
}

#[test]
fn bands_are_distinguished_by_name() {
    let limits = "limits: [
        { name: one, rate: 10/s burst 50 },
        { name: two, bands: [10/s burst 25, 100/15min, { rate: 1000/h, label: hourly }] },
        { name: two.hourly, rate: 3/2s },
        { name: window, rate: 100/min, algorithm: sliding-window },
        { name: odd, rate: 3/1500ms }]";
    assert_eq!(
        names(&format!("policies: [{{ name: p, {limits} }}]")),
        [
            r#""one";q=50;w=5"#,
            r#""two.1s";q=25;w=3"#,
            r#""two.15min";q=100;w=900"#,
            r#""two.hourly";q=1000;w=3600"#,
            r#""two.hourly~2";q=3;w=2"#,
            r#""window";q=100;w=60"#,
            r#""odd";q=3;w=2"#,
        ]
    );
    assert_eq!(
        names(&format!(
            "respond: {{ names: hidden }}\npolicies: [{{ name: p, {limits} }}]"
        ))[..4],
        [
            r#""1";q=50;w=5"#,
            r#""2.1";q=25;w=3"#,
            r#""2.2";q=100;w=900"#,
            r#""2.3";q=1000;w=3600"#,
        ]
    );
}
