//! Documents, `FluxGate` rules and plans in `MongoDB`.

use super::admin::{admin, administrate};
use super::etcd::limits;
use super::kit::{AWAY, BACK, Program, REFUSED, SERVED, nth_rate, policies, policy, under_load};
use crate::kit::post;
use mongodb::bson::{Bson, Document, doc, oid::ObjectId};
use mongodb::{Client, Collection};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_mins(1);

const POLICIES: &str = "tidegate_policies";
const PLANS: &str = "tidegate_plans";
const RULES: &str = "rate_limit_rules";

/// A database for one test.
struct TestDatabase {
    url: String,
    database: String,
    client: Client,
}

impl TestDatabase {
    /// Opens it; `None` if there is no server, which skips the test. With `CI` set, panics instead.
    #[expect(
        clippy::print_stderr,
        reason = "whoever runs tests is to know what was not"
    )]
    async fn make() -> Option<Self> {
        let Some(url) = std::env::var_os("TIDEGATE_TEST_MONGODB_URL") else {
            let missing = "there is no MongoDB: ./scripts/test runs one, or set TIDEGATE_TEST_MONGODB_URL to its URL";
            let in_ci = std::env::var_os("CI")
                .is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0");
            assert!(!in_ci, "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        };
        let url = url.into_string().unwrap();
        let client = Client::with_uri_str(&url).await.unwrap();
        let database = format!("tidegate_test_{}", ObjectId::new().to_hex());
        Some(Self {
            url,
            database,
            client,
        })
    }

    fn collection(&self, name: &str) -> Collection<Document> {
        self.client.database(&self.database).collection(name)
    }

    /// Sets all texts of a stored document; returns the new version.
    async fn set(&self, collection: &str, texts: impl Into<Bson>) -> String {
        let id = doc! { "_id": "tidegate" };
        let update = doc! { "$set": { "texts": texts }, "$inc": { "version": 1_i64 } };
        let collection = self.collection(collection);
        let updated = collection.update_one(id.clone(), update).upsert(true).await;
        updated.unwrap();
        let there = collection.find_one(id).await.unwrap().unwrap();
        there.get_i64("version").unwrap().to_string()
    }

    async fn set_policy(&self, rate: &str) -> String {
        let limits = vec![doc! { "name": "all", "rate": rate }];
        let document = doc! { "name": "api", "limits": limits };
        self.set(
            POLICIES,
            vec![doc! { "name": "policy/api", "document": document }],
        )
        .await
    }

    fn config(&self, collection: &str) -> String {
        let Self { url, database, .. } = self;
        format!(
            "sources: [{{ mongodb: {{ url: '{url}', database: {database}, {collection} }}, refresh: 100ms }}]"
        )
    }

    async fn over(self) {
        self.client.database(&self.database).drop().await.unwrap();
    }
}

fn documents() -> String {
    format!("collection: {POLICIES}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mongodb_change_is_served_without_errors() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    there.set_policy(&nth_rate(0)).await;
    let mut program = Program::start(&there.config(&documents())).await;
    under_load(&mut program, "api", async |program, _, rate| {
        let version = there.set_policy(&rate).await;
        program.serves("mongodb", &version).await;
    })
    .await;
    there.over().await;
}

#[tokio::test]
async fn changes_through_a_server_are_written_to_mongodb_and_served_by_all() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    // Nothing exists yet, not even the collection.
    let own = policies("own", "1/s");
    let text = format!("{}\n{}\n{own}", there.config(&documents()), admin());
    let (a, mut b) = (Program::start(&text).await, Program::start(&text).await);
    for name in ["api", "web"] {
        let made: Value = serde_json::from_str(&policy(name, "5/s")).unwrap();
        let (status, said) = administrate(&a, "POST", "/policies", &made).await;
        assert_eq!(status, 201, "{said}");
    }
    let (status, said) = administrate(&a, "DELETE", "/policies/web", &Value::Null).await;
    assert!(status < 300, "{status} {said}");
    let (status, said) = administrate(&a, "PATCH", "/policies/api", &limits("6/s")).await;
    assert_eq!(status, 200, "{said}");
    loop {
        b.process.logs(SERVED, ("source", "mongodb")).await;
        let question = r#"{"policy": "api", "path": "/"}"#;
        if post(b.http, question).await.json()["band"] == "6/s" {
            break;
        }
    }
    // The other instance changes it next, based on the first change.
    let (status, said) = administrate(&b, "PATCH", "/policies/api", &limits("7/s")).await;
    assert_eq!(status, 200, "{said}");
    let document = there.collection(POLICIES).find_one(doc! {}).await.unwrap();
    let texts = document.unwrap().get_array("texts").unwrap().clone();
    assert_eq!(texts.len(), 1, "{texts:?}");
    let entry = texts[0].as_document().unwrap();
    assert_eq!(entry.get_str("name").ok(), Some("policy/api"));
    let document = entry.get_document("document").unwrap();
    let limit = document.get_array("limits").unwrap()[0].as_document();
    assert_eq!(
        limit.unwrap().get_str("rate").ok(),
        Some("7/s"),
        "{document}"
    );
    there.over().await;
}

#[tokio::test]
async fn malformed_or_missing_documents_keep_the_served_config() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    there.set_policy("5/s").await;
    let mut program = Program::start(&there.config(&documents())).await;
    let source = ("source", "mongodb");
    // First without a policy, then without the document, then nothing at all.
    let misnamed = doc! { "name": "policy/api", "document": { "name": "other" } };
    there.set(POLICIES, vec![misnamed]).await;
    program.process.logs(REFUSED, source).await;
    assert_eq!(program.band("api").await, "5/s");
    there.set(POLICIES, "nonsense").await;
    let line = program.process.logs(AWAY, source).await;
    assert!(
        line.to_string().contains("its `texts` is not a list"),
        "{line}"
    );
    assert_eq!(program.band("api").await, "5/s");
    there.collection(POLICIES).drop().await.unwrap();
    while !program.is_stale("mongodb").await {
        tokio::task::yield_now().await;
    }
    assert_eq!(program.band("api").await, "5/s");
    there.set_policy("6/s").await;
    program.process.logs(BACK, source).await;
    while program.band("api").await != "6/s" {
        program.process.logs(SERVED, source).await;
    }
    there.over().await;
}

/// Returns a rule as `FluxGate` stores it.
fn rule(set: &str, capacity: i64) -> Document {
    doc! {
        "id": set, "ruleSetId": set, "enabled": true, "scope": "PER_IP", "keyStrategyId": "clientIp",
        "onLimitExceedPolicy": "REJECT_REQUEST",
        "bands": [{ "windowSeconds": 3600_i64, "capacity": capacity, "label": "hourly" }],
    }
}

#[tokio::test]
async fn changed_mongodb_rules_give_no_fresh_burst() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let rules = there.collection(RULES);
    let both = [rule("api", 3), rule("web", 5)];
    rules.insert_many(both).await.unwrap();
    let mut program =
        Program::start(&there.config(&format!("collection: {RULES}, format: fluxgate"))).await;
    let ask = async |program: &Program| {
        let question = r#"{"policy": "api", "path": "/", "ip": "192.0.2.1"}"#;
        post(program.http, question).await.json()["allowed"].clone()
    };
    for allowed in [true, true, true, false] {
        assert_eq!(ask(&program).await, allowed);
    }
    let wider = doc! { "$set": { "bands.0.capacity": 6_i64 } };
    let web = doc! { "ruleSetId": "web" };
    rules.update_one(web, wider).await.unwrap();
    program.process.logs(SERVED, ("source", "mongodb")).await;
    assert_eq!(ask(&program).await, false);
    there.over().await;
}

/// Returns a config with plans in `MongoDB`, and a policy with them.
fn plans(there: &TestDatabase) -> String {
    let TestDatabase { url, database, .. } = there;
    format!(
        "
plans: [{{ name: events, mongodb: {{ url: '{url}', database: {database}, documents: {PLANS} }}, refresh: 100ms }}]
policies:
  - name: api
    limits:
      - {{ name: all, key: attr:project, rate: {{ plan: events, subject: attr:project, default: refuse }} }}
"
    )
}

/// Waits until a subject has a rate.
async fn has(program: &Program, subject: &str, rate: &str) {
    let question = format!(r#"{{"attributes": {{"project": "{subject}"}}}}"#);
    let asked = async {
        while post(program.http, &question).await.json()["band"] != rate {
            tokio::task::yield_now().await;
        }
    };
    let asked = timeout(PATIENCE, asked).await;
    asked.unwrap_or_else(|_| panic!("{subject} never has {rate}"));
}

/// Waits for another failed load of plans.
async fn fails(program: &Program) {
    let name = "tidegate_plan_failures_total{plan=\"events\"}";
    let before = program.sample(name).await;
    let failed = async {
        while program.sample(name).await == before {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, failed).await.expect("it fails");
}

#[tokio::test]
async fn mongodb_plans_are_shared_and_kept_while_malformed_or_missing() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let texts = |rate: &str| {
        vec![
            doc! { "name": "plan/free", "text": rate },
            doc! { "name": "group/acme", "document": { "plan": "free" } },
            doc! { "name": "subject/ann", "document": { "group": "acme" } },
            doc! { "name": "subject/bob", "document": { "group": "acme", "amount": 7.0 } },
        ]
    };
    there.set(PLANS, texts("100000/min")).await;
    let text = plans(&there);
    let (a, b) = (Program::start(&text).await, Program::start(&text).await);
    for program in [&a, &b] {
        has(program, "ann", "100000/min").await;
        has(program, "bob", "7/min").await;
    }
    there.set(PLANS, texts("200000/min")).await;
    has(&a, "ann", "200000/min").await;
    has(&b, "ann", "200000/min").await;

    there.set(PLANS, texts("many")).await;
    fails(&a).await;
    has(&a, "ann", "200000/min").await;
    there.set(PLANS, vec![doc! { "text": "nameless" }]).await;
    fails(&a).await;
    has(&a, "ann", "200000/min").await;
    there.collection(PLANS).drop().await.unwrap();
    fails(&a).await;
    has(&a, "ann", "200000/min").await;
    there.set(PLANS, texts("300000/min")).await;
    has(&a, "ann", "300000/min").await;
    has(&b, "ann", "300000/min").await;
    there.over().await;
}
