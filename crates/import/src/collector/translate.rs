//! Writes the configuration.

use super::variables::CollectorVariables;
use crate::base::SectionWriter;

/// Variables that the translation refers to, because they may hold secrets.
const MONGODB: &str = "ACCOUNTS_MONGODB_URI";
const WEBHOOK: &str = "NOTIFY_URL";

/// The same variables, each with a sample value.
pub(super) const ASKED_FOR: [(&str, &str); 2] = [
    (MONGODB, "mongodb://localhost/hawk"),
    (WEBHOOK, "https://localhost/"),
];

/// The policy: a window for each project, with the length and the amount that its plan sets.
const POLICY: &str = "\
policies:
  - name: events
    evaluate: all
    limits:
      - name: per-project
        key: attr:project
        missing: refuse
        rate: { plan: events, subject: attr:project, default: unlimited }
        algorithm: fixed-window
";

/// The collections and fields of the collector's database.
const COLLECTIONS: [(&str, &str); 7] = [
    ("groups", "workspaces"),
    ("subjects", "projects"),
    ("settings", "rateLimitSettings"),
    ("amount", "N"),
    ("period", "T"),
    ("plan_of_group", "tariffPlanId"),
    ("group_of_subject", "workspaceId"),
];

/// Returns the whole configuration.
pub(super) fn base(said: &CollectorVariables) -> String {
    let mut base = SectionWriter::default();
    base.section("listen").field("http", "127.0.0.1:8080");
    base.section("respond").field("profile", "collector");
    base.section("store");
    // Without `url`, the variable sets the URL of Redis.
    if let Some(url) = &said.redis {
        base.named("url", url);
    }
    base.map("redis").field("layout", "open");
    base.section("guards");
    for (name, subject, set, refresh) in [
        (
            "blacklist",
            "ip",
            &said.blacklist_set,
            &said.blacklist_refresh,
        ),
        (
            "projects",
            "attr:project",
            &said.projects_set,
            &said.projects_refresh,
        ),
    ] {
        base.item("name", name).field("deny", subject);
        base.within("redis", "set", set).field("refresh", refresh);
    }
    base.section("addresses")
        .field("period", &said.blacklist_refresh);
    base.field("threshold", said.threshold);
    base.field("ban", "{ guard: blacklist, for: 1h }");
    base.map("maps")
        .named("period", &said.period_map)
        .named("total", &said.total_map);
    base.section("plans").item("name", "events");
    plan_source(&mut base, said);
    base.field("refresh", &said.plans_refresh);
    if said.alerts {
        base.section("alerts")
            .text("webhook", &format!("${{{WEBHOOK}}}"));
        base.field("format", "form").field("on", "[ban]");
    }
    let mut text = base.finish();
    text.push_str(POLICY);
    text
}

/// Writes where the plans are: the collections of the event collector, or a file next to the configuration.
fn plan_source(base: &mut SectionWriter, said: &CollectorVariables) {
    let Some(database) = &said.plans else {
        base.field("file", "plans.yaml");
        base.field("format", "collector");
        return;
    };
    let url = format!("\"${{{MONGODB}}}\"");
    base.deeper("mongodb").field("url", url);
    base.field("database", format!("\"{database}\""));
    for (field, name) in COLLECTIONS {
        base.field(field, name);
    }
    base.end_of_map();
}
