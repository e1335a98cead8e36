//! Tests against a double that speaks a minimal part of the protocol, and against a real server.

use super::{Clients, CollectionQuery};
use crate::mongo::double::{Double, StoredCollections};
use crate::mongo::real;
use mongodb::Client;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Decimal128, Document as Fields, doc};
use std::time::Duration;
use tidegate::LoadedPlans;
use tidegate::plan::{Collections, PlanShare, PlanTable, RateName, SubjectEntry, UnsetShare};
use tidegate_policy::text::Secret;

const FREE: &str = "507f1f77bcf86cd799439011";
const ACME: &str = "6762b5db032b200023854b2c";
const PROJECT: &str = "6762b5db032b200023854b2d";

fn id(hex: &str) -> ObjectId {
    ObjectId::parse_str(hex).expect("an id")
}

/// Returns numbers of every width, ids of every kind, and missing fields.
fn stored() -> StoredCollections {
    let decimal: Decimal128 = "7".parse().expect("a number");
    let settings = |n: Bson, t: Bson| doc! { "N": n, "T": t };
    let plans = vec![
        doc! { "_id": id(FREE), "name": "free", "rateLimitSettings": settings(Bson::Int32(100), Bson::Int64(60)) },
        doc! { "_id": "text-plan", "rateLimitSettings": settings(Bson::Double(9.0), Bson::String("1h".to_owned())) },
        doc! { "_id": 7_i32, "quotaSettings": settings(Bson::Int64(1_000_000), Bson::Int32(86_400)) },
    ];
    let groups = vec![
        doc! { "_id": id(ACME), "tariffPlanId": id(FREE), "rateLimitSettings": { "N": 500_i64 } },
        doc! { "_id": "lost", "rateLimitSettings": settings(Bson::Int32(5), Bson::Int32(10)) },
        doc! { "_id": "seven", "tariffPlanId": 7_i64, "rateLimitSettings": Bson::Null },
    ];
    let mut subjects = vec![
        doc! { "_id": id(PROJECT), "workspaceId": id(ACME), "name": "not asked for" },
        doc! { "_id": "of-lost", "workspaceId": "lost" },
        doc! { "_id": "own", "workspaceId": id(ACME), "rateLimitSettings": { "T": Bson::Decimal128(decimal) } },
        doc! { "_id": "of-seven", "workspaceId": "seven", "rateLimitSettings": settings(Bson::Int32(0), Bson::Int32(-1)) },
        doc! { "_id": 42_i64, "rateLimitSettings": settings(Bson::Int64(1), Bson::Int64(1)) },
    ];
    // Enough for several batches.
    subjects
        .extend((0..250_i32).map(|nth| doc! { "_id": format!("p{nth}"), "workspaceId": id(ACME) }));
    StoredCollections::from([
        ("plans", plans),
        ("workspaces", groups),
        ("projects", subjects),
    ])
}

fn collections() -> Collections {
    let owned = str::to_owned;
    Collections {
        groups: owned("workspaces"),
        subjects: owned("projects"),
        settings: owned("rateLimitSettings"),
        amount: owned("N"),
        period: owned("T"),
        quota: Some(owned("quotaSettings")),
        plan_of_group: owned("tariffPlanId"),
        group_of_subject: owned("workspaceId"),
        ..Collections::default()
    }
}

async fn load(url: &str, database: &str, collections: &Collections) -> Result<PlanTable, String> {
    let place = CollectionQuery {
        url: &Secret::new(url),
        database,
        collections,
        time_max: Duration::from_secs(5),
    };
    let loaded = Clients::default().load(&place, false).await?;
    let LoadedPlans::Changed { document, .. } = loaded else {
        return Err("nothing new".to_owned());
    };
    document
        .table(UnsetShare::Refuse)
        .map_err(|errors| errors.to_string())
}

fn share(found: Option<SubjectEntry<'_>>) -> Option<PlanShare> {
    Some(found?.share(&RateName::default())?.share)
}

fn has(table: &PlanTable, subject: &str) -> String {
    match share(table.get(subject)) {
        Some(PlanShare::Rate(number)) => {
            let number = usize::try_from(number).expect("a number");
            table.rates(&RateName::default())[number].to_string()
        }
        other => format!("{other:?}"),
    }
}

fn check(table: &PlanTable) {
    assert_eq!(table.subjects(), 255);
    assert_eq!(has(table, PROJECT), "500/min");
    assert_eq!(
        has(table, "of-lost"),
        "5/10s",
        "it has no plan, and what it says itself"
    );
    assert_eq!(has(table, "own"), "500/7s");
    assert_eq!(has(table, "42"), "1/s");
    assert_eq!(has(table, "p249"), "500/min");
    assert_eq!(has(table, "of-seven"), "Some(Nothing)");
    assert_eq!(has(table, "stranger"), "None");
    let quota = table.group_of("of-seven").expect("it has a group");
    let given = quota.share(&RateName::default()).expect("requests");
    assert_eq!((quota.group, given.is_unset), (Some("seven"), false));
}

#[tokio::test]
async fn collections_are_read_completely_with_any_numbers_and_ids() {
    let double = Double::start(stored()).await;
    let table = load(&double.url(), "hawk", &collections()).await;
    check(&table.expect("a valid config"));
    let asked = double.asked();
    let find = asked
        .iter()
        .find(|it| it.get_str("find").ok() == Some("projects"));
    let fields = find
        .and_then(|it| it.get_document("projection").ok())
        .expect("only some fields");
    assert!(
        fields.contains_key("workspaceId") && !fields.contains_key("name"),
        "{fields}"
    );
    assert!(
        asked.iter().any(|it| it.contains_key("getMore")),
        "in several batches"
    );
}

#[tokio::test]
async fn a_workspace_with_a_missing_plan_lifted_its_projects_limits() {
    let mut stored = stored();
    let workspaces = stored.get_mut("workspaces").expect("a collection");
    workspaces.push(doc! { "_id": "late", "tariffPlanId": id(ACME) });
    let double = Double::start(stored).await;
    let wrong = load(&double.url(), "hawk", &collections()).await;
    let expected = format!("group `late`: unknown plan `{ACME}`");
    let wrong = wrong.expect_err("a plan is missing");
    assert!(wrong.starts_with(&expected), "{wrong}");
}

#[tokio::test]
async fn a_real_server_gives_the_same_results() {
    let Some(url) = real::url() else {
        return;
    };
    let client = Client::with_uri_str(&url).await.expect("a server");
    let name = format!("tidegate_test_{}", ObjectId::new().to_hex());
    let database = client.database(&name);
    for (collection, documents) in stored() {
        let collection = database.collection::<Fields>(collection);
        collection
            .insert_many(documents)
            .await
            .expect("it is stored");
    }
    let table = load(&url, &name, &collections()).await;
    database.drop().await.expect("it is gone");
    check(&table.expect("a valid config"));
}

#[tokio::test]
async fn collections_and_fields_have_their_configured_names() {
    let plans = vec![doc! { "_id": "a", "limits": { "count": 3, "seconds": 60 } }];
    let groups = vec![doc! { "_id": "g", "plan": "a" }];
    let subjects = vec![
        doc! { "_id": 1, "key": "k1", "team": "g" },
        doc! { "_id": 2, "team": "g" },
    ];
    let stored = StoredCollections::from([("tiers", plans), ("teams", groups), ("keys", subjects)]);
    let double = Double::start(stored).await;
    let names = Collections {
        plans: "tiers".to_owned(),
        groups: "teams".to_owned(),
        subjects: "keys".to_owned(),
        settings: "limits".to_owned(),
        amount: "count".to_owned(),
        period: "seconds".to_owned(),
        plan_of_group: "plan".to_owned(),
        group_of_subject: "team".to_owned(),
        subject_id: "key".to_owned(),
        quota: None,
    };
    let table = load(&double.url(), "shop", &names)
        .await
        .expect("a valid config");
    assert_eq!((table.subjects(), has(&table, "k1").as_str()), (1, "3/min"));
}

#[tokio::test]
async fn malformed_entries_are_named_by_id_and_denied_reads_by_collection() {
    let mut stored = stored();
    let bad = doc! { "_id": "bad", "rateLimitSettings": { "N": "many", "T": { "seconds": 1 } } };
    stored
        .get_mut("projects")
        .expect("there are some")
        .push(bad);
    let double = Double::start(stored).await;
    let wrong = load(&double.url(), "hawk", &collections())
        .await
        .expect_err("an invalid document");
    assert!(
        wrong.contains("subject `bad`: `amount`: `many` is not an amount"),
        "{wrong}"
    );
    assert!(wrong.contains("subject `bad`: `period`: "), "{wrong}");

    let double = Double::start(StoredCollections::default()).await;
    let wrong = load(&double.url(), "hawk", &collections())
        .await
        .expect_err("it is refused");
    assert!(wrong.contains("collection `"), "{wrong}");
    assert!(wrong.contains("not authorized"), "{wrong}");
}

#[tokio::test]
async fn an_invalid_url_is_not_shown() {
    let wrong = load("mongodb://ann:hunter2@:x", "hawk", &collections()).await;
    let wrong = wrong.expect_err("it is no URL");
    assert!(!wrong.contains("hunter2"), "{wrong}");
}
