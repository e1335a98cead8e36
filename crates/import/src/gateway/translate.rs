//! Writes the configuration.

use super::GatewayFiles;
use super::items::{ImportedPolicy, ImportedRoute};
use super::settings::GatewaySettings;
use crate::base::SectionWriter;
use crate::draft::{
    AlgorithmDraft, ConditionDraft, KeyDraft, LimitDraft, PolicyDraft, RateDraft, RequestScope,
};
use crate::names::{self, NameRequest};
use crate::note::ImportNotes;
use crate::text::{escaped, quote};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tidegate_policy::limit::ChargeTime;
use tidegate_policy::text::ConfigFault;

/// The policy of consumers.
const CONSUMERS: &str = "consumers";

/// The limit of a policy; reports use this as its type.
const ROUTE: &str = "route";

/// The policy, and the plan source, of all routes, if several policies share the documented keys.
const ROUTES: &str = "routes";

/// The longest name of a consumer that the gateway accepts, in bytes.
const CONSUMER_MAX: usize = 64;

/// The header that names the consumer.
const HEADER: &str = "X-Consumer-ID";

/// Returns the sections before the policies, and the policies.
pub(super) fn all(
    found: &GatewayFiles,
    whole: &str,
    notes: &mut ImportNotes,
) -> (String, Vec<PolicyDraft>) {
    let policies = found.items.policies.iter();
    let wanted = policies.map(|policy| NameRequest::given_to(&policy.name, of(policy)));
    let names = names::all(&wanted.collect::<Vec<_>>(), &["none", CONSUMERS]);
    let policies = found.items.policies.iter().zip(names);
    let called: PolicyNames<'_> = policies
        .map(|(policy, name)| (policy.id.as_str(), name))
        .collect();
    let mut drafts: Vec<PolicyDraft> = Vec::new();
    if let Some(settings) = planned(found) {
        drafts.extend(by_plan(settings, found, notes));
    } else {
        for policy in &found.items.policies {
            let name = called.get(policy.id.as_str()).cloned().unwrap_or_default();
            drafts.push(by_route(policy, name, found, notes));
        }
    }
    drafts.extend(consumers(found));
    if drafts.is_empty() {
        let text = "the gateway keeps policies in a database, and none was imported: this one is \
            an example and limits no request";
        notes.add((whole, 1), text);
        drafts.push(example(found.settings.as_ref()));
    }
    (base(found, &called, notes), drafts)
}

/// The names of policies in Tidegate, by their ids in the gateway.
type PolicyNames<'f> = BTreeMap<&'f str, String>;

/// Returns the settings if the policies become plans of one limit, by route. The documented keys
/// contain the route but not its policy. Several limits would share such keys, and one limit does not.
/// Without Redis there are no keys to keep. Without routes, the policy of a route is unknown.
fn planned(found: &GatewayFiles) -> Option<&GatewaySettings> {
    let carries = |route: &ImportedRoute| route.policy.is_some();
    let is_planned = found.items.policies.len() > 1 && found.items.routes.iter().any(carries);
    found.settings.as_ref().filter(|_| is_planned)
}

/// Returns the identity of a policy: two policies may share a name, but not an id.
fn of(policy: &ImportedPolicy) -> String {
    format!("{}\n{}", policy.name, policy.id)
}

fn base(found: &GatewayFiles, called: &PolicyNames<'_>, notes: &mut ImportNotes) -> String {
    let mut base = SectionWriter::default();
    let settings = found.settings.as_ref();
    let has_routes = !found.items.routes.is_empty();
    let port = settings.and_then(|settings| settings.port);
    let (listener, usual) = if has_routes {
        ("gateway", 8000)
    } else {
        ("http", 8080)
    };
    let address = format!("127.0.0.1:{}", port.unwrap_or(usual));
    base.section("listen").field(listener, address);
    if let Some(settings) = settings {
        store(&mut base, settings);
    }
    if let Some(consumer) = found.items.consumers.first() {
        let text = format!(
            "the consumer comes from `{HEADER}`, only if a trusted proxy sends it; to read it \
             from a token, set `client.jwt` and `consumer: [{{ claim: azp }}, {{ claim: clientId \
             }}]`"
        );
        notes.add((&consumer.place.0, consumer.place.1), text);
        let source = format!("{{ header: {HEADER} }}");
        base.section("client").field("consumer", source);
    }
    base.section("respond").field("profile", "gateway");
    if has_routes {
        let routes = in_order(&found.items.routes, notes);
        let ids: Vec<NameRequest> = routes.iter().map(|it| NameRequest::given(&it.id)).collect();
        let routes: Vec<(&ImportedRoute, String)> =
            routes.into_iter().zip(names::all(&ids, &[])).collect();
        if planned(found).is_some() {
            plans(&mut base, &routes, found, called);
        }
        base.section("routes");
        for (it, id) in &routes {
            if *id != it.id {
                let mut text = format!("route {} is renamed to `{id}`", ConfigFault::quote(&it.id));
                if settings.is_some() && it.policy.is_some() {
                    text.push_str(", also in Redis: its buckets start full");
                }
                notes.add((&it.place.0, it.place.1), text);
            }
            base.item("name", quote(id));
            route(&mut base, it, found, called);
        }
    }
    base.finish()
}

/// Writes `store`: the gateway's Redis, in the layout of its documents, and its fallback.
fn store(base: &mut SectionWriter, settings: &GatewaySettings) {
    base.section("store").text("url", settings.url());
    base.field("on_failure", settings.on_failure());
    // A variable is text; a number is written unquoted.
    let share = settings.local_share();
    if share.contains('$') {
        base.text("local_share", share);
    } else {
        base.field("local_share", share);
    }
    base.map("redis").field("layout", "open");
    if settings.has_password {
        base.text("password", "${SPRING_DATA_REDIS_PASSWORD}");
    }
}

/// Writes the policies as plans, and the plan of each route.
fn plans(
    base: &mut SectionWriter,
    routes: &[(&ImportedRoute, String)],
    found: &GatewayFiles,
    called: &PolicyNames<'_>,
) {
    let plan = |id: &str| called.get(id).map(String::as_str);
    let policies = found.items.policies.iter();
    let rates = policies.filter_map(|it| Some((plan(&it.id)?, it.rate.clone())));
    let routes = routes.iter().filter_map(|(route, id)| {
        let plan = plan(route.policy.as_deref()?)?;
        Some((id.as_str(), format!("{{ plan: {} }}", quote(plan))))
    });
    base.section("plans").item("name", ROUTES);
    base.deeper("inline");
    base.entries("plans", rates).entries("subjects", routes);
}

/// Returns the routes in Tidegate's order, in which the first match counts. A route comes before others
/// with a prefix of its path, and a route for some methods before one for all.
fn in_order<'r>(routes: &'r [ImportedRoute], notes: &mut ImportNotes) -> Vec<&'r ImportedRoute> {
    let mut sorted: Vec<&ImportedRoute> = routes.iter().collect();
    sorted.sort_by_key(|route| {
        let path = route.path.trim_end_matches('/');
        (Reverse(path.len()), route.methods.is_empty())
    });
    let mut both = routes.iter().zip(&sorted);
    if let Some((_, first)) = both.find(|(written, sorted)| !std::ptr::eq(*written, **sorted)) {
        let text = "routes are sorted, longer paths first, because the first match applies";
        notes.add((&first.place.0, first.place.1), text);
    }
    sorted
}

/// Writes the fields of a route after its id.
fn route(
    base: &mut SectionWriter,
    route: &ImportedRoute,
    found: &GatewayFiles,
    called: &PolicyNames<'_>,
) {
    let path = quote(&escaped(&route.path));
    let methods: Vec<String> = route.methods.iter().map(|it| quote(&escaped(it))).collect();
    let methods = if methods.is_empty() {
        String::new()
    } else {
        format!(", method: [{}]", methods.join(", "))
    };
    base.field("match", format!("{{ path: {path}{methods} }}"));
    base.named("upstreams", &route.upstream);
    let policy = route.policy.as_deref().and_then(|id| called.get(id));
    let policy =
        policy.map(|name| planned(found).map_or_else(|| name.clone(), |_| ROUTES.to_owned()));
    let consumers = (!found.items.consumers.is_empty()).then(|| CONSUMERS.to_owned());
    let carried: Vec<String> = policy.into_iter().chain(consumers).collect();
    let carried: Vec<String> = carried.iter().map(|name| quote(name)).collect();
    match carried.as_slice() {
        [] => base.field("policy", "none"),
        [one] => base.field("policy", one),
        several => base.field("policy", format!("[{}]", several.join(", "))),
    };
}

/// Returns one policy by route and address for all policies: each route has the rate of its plan.
fn by_plan(
    settings: &GatewaySettings,
    found: &GatewayFiles,
    notes: &mut ImportNotes,
) -> Option<PolicyDraft> {
    let first = found.items.policies.first()?;
    let text = format!(
        "policies are plans of one limit, by route, so that keys keep their documented names `{}:ROUTE:CLIENT`; metrics and logs name the policy `{ROUTES}`",
        settings.prefix()
    );
    notes.add((&first.place.0, first.place.1), text);
    let rate_of_plan = format!("{{ plan: {ROUTES}, subject: route, default: refuse }}");
    let limit = LimitDraft {
        key: route_and_address(),
        rates: rate(&rate_of_plan),
        template: Some(documented(settings)),
        ..LimitDraft::new(ROUTE.to_owned(), AlgorithmDraft::Tokens)
    };
    Some(PolicyDraft {
        name: ROUTES.to_owned(),
        domain: ROUTES.to_owned(),
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits: vec![limit],
    })
}

/// Returns a policy by route and address.
fn by_route(
    policy: &ImportedPolicy,
    name: String,
    found: &GatewayFiles,
    notes: &mut ImportNotes,
) -> PolicyDraft {
    let is_only = found.items.policies.len() == 1;
    let template = found.settings.as_ref().map(|settings| {
        if is_only {
            return documented(settings);
        }
        let text = "the routes of this policy are unknown: its keys are named \
            `PREFIX:POLICY:ROUTE:CLIENT`, and existing buckets are not used. Import the list of \
            routes as well to keep the documented key names";
        notes.add((&policy.place.0, policy.place.1), text);
        format!("{}:{{policy}}:{{route}}:{{ip}}", settings.prefix())
    });
    let limit = LimitDraft {
        key: route_and_address(),
        rates: rate(&policy.rate),
        template,
        ..LimitDraft::new(ROUTE.to_owned(), AlgorithmDraft::Tokens)
    };
    PolicyDraft {
        domain: name.clone(),
        name,
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits: vec![limit],
    }
}

/// Returns a policy with a limit for each consumer that has one.
fn consumers(found: &GatewayFiles) -> Option<PolicyDraft> {
    let wanted = found.items.consumers.iter();
    let wanted: Vec<NameRequest> = wanted.map(|it| NameRequest::given(&it.name)).collect();
    // Routes use both policies, and the limits of one decision need different names.
    let names = names::all(&wanted, &[ROUTE]);
    let prefix = found.settings.as_ref().map(GatewaySettings::prefix);
    let limits = found.items.consumers.iter().zip(names);
    let limits = limits.map(|(consumer, name)| {
        let condition = ConditionDraft {
            attribute: Some(("consumer".to_owned(), consumer.name.clone())),
            ..ConditionDraft::default()
        };
        LimitDraft {
            whom: RequestScope::Any(vec![condition]),
            rates: rate(&consumer.rate),
            template: prefix.map(|prefix| template(prefix, &consumer.name, &name)),
            ..LimitDraft::new(name, AlgorithmDraft::Tokens)
        }
    });
    let limits: Vec<LimitDraft> = limits.collect();
    (!limits.is_empty()).then(|| PolicyDraft {
        name: CONSUMERS.to_owned(),
        domain: CONSUMERS.to_owned(),
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits,
    })
}

/// Returns the template for the key of a consumer. It contains the consumer's name, which is also the
/// limit's name if possible.
fn template(prefix: &str, consumer: &str, limit: &str) -> String {
    if limit != consumer && is_plain(consumer) {
        return format!("{prefix}:consumer:{consumer}");
    }
    format!("{prefix}:consumer:{{limit}}")
}

/// Returns true if the name of a consumer is valid in the gateway. Such a name can be part of a key.
fn is_plain(consumer: &str) -> bool {
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    consumer.len() <= CONSUMER_MAX && consumer.chars().all(belongs)
}

/// Returns an example policy, for an import without policies.
fn example(settings: Option<&GatewaySettings>) -> PolicyDraft {
    let template = settings.map(documented);
    let limit = LimitDraft {
        key: route_and_address(),
        rates: rate("10/s burst 50"),
        enabled: false,
        template,
        ..LimitDraft::new(ROUTE.to_owned(), AlgorithmDraft::Tokens)
    };
    PolicyDraft {
        name: ROUTES.to_owned(),
        domain: ROUTES.to_owned(),
        evaluate: "all",
        charge: ChargeTime::IfFits,
        limits: vec![limit],
    }
}

/// Returns the template of the keys that the gateway documents.
fn documented(settings: &GatewaySettings) -> String {
    format!("{}:{{route}}:{{ip}}", settings.prefix())
}

fn route_and_address() -> KeyDraft {
    KeyDraft::Parts {
        parts: vec!["route".to_owned(), "ip".to_owned()],
        or_skip: false,
    }
}

fn rate(text: &str) -> Vec<RateDraft> {
    vec![RateDraft {
        text: text.to_owned(),
        label: None,
    }]
}
