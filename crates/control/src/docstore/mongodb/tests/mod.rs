//! A document store in a real `MongoDB`.

mod relay;

use super::MongoDocumentStore;
use crate::docstore::{
    DocumentChange, DocumentSnapshot, DocumentStore, Revision, SourceError, WriteError,
};
use crate::mongo::double::{Double, StoredCollections};
use crate::mongo::real;
use futures_util::future::join_all;
use mongodb::bson::{Document as Fields, doc};
use mongodb::{Client, Collection};
use relay::{LostMessage, Relay};
use std::time::Duration;
use tidegate_policy::documents::MongoDocuments;
use tidegate_policy::text::Secret;
use tokio::net::TcpListener;

const COLLECTION: &str = "tidegate_policies";
const LONG: Duration = Duration::from_secs(20);

/// A database for one test.
struct TestDatabase {
    url: String,
    database: String,
    client: Client,
}

impl TestDatabase {
    async fn make() -> Option<Self> {
        let url = real::url()?;
        let client = Client::with_uri_str(&url).await.expect("a server");
        let database = real::database();
        Some(Self {
            url,
            database,
            client,
        })
    }

    fn shelf(&self) -> MongoDocumentStore {
        shelf(&self.url, &self.database, LONG)
    }

    fn collection(&self) -> Collection<Fields> {
        self.client.database(&self.database).collection(COLLECTION)
    }

    async fn document(&self) -> Option<Fields> {
        let found = self.collection().find_one(doc! {}).await;
        found.expect("it is read")
    }

    /// Changes the document by hand.
    async fn by_hand(&self, update: Fields) {
        let updated = self.collection().update_one(doc! {}, update).await;
        assert_eq!(updated.expect("it is updated").matched_count, 1);
    }

    async fn over(self) {
        let database = self.client.database(&self.database);
        database.drop().await.expect("it is gone");
    }
}

fn shelf(url: &str, database: &str, time_max: Duration) -> MongoDocumentStore {
    let place = MongoDocuments {
        url: Secret::new(url),
        database: database.to_owned(),
        collection: COLLECTION.to_owned(),
    };
    MongoDocumentStore::new(&place, time_max)
}

fn set(name: &str, text: &str) -> DocumentChange {
    DocumentChange {
        key: name.to_owned(),
        text: Some(text.to_owned()),
    }
}

fn remove(name: &str) -> DocumentChange {
    DocumentChange {
        key: name.to_owned(),
        text: None,
    }
}

async fn read(shelf: &MongoDocumentStore) -> DocumentSnapshot {
    let read = shelf.read(None).await.expect("it answers");
    read.expect("no earlier version")
}

fn own(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    texts.iter().map(own).collect()
}

fn nothing() -> Revision {
    Revision("0".to_owned())
}

#[tokio::test]
async fn written_documents_can_be_read_and_edited_by_others() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let (one, other) = (there.shelf(), there.shelf());
    assert_eq!(
        (read(&one).await.version, read(&one).await.texts.len()),
        (nothing(), 0)
    );
    let api = r#"{"name": "api", "limits": [{"name": "all", "rate": "5/s", "burst": 7}]}"#;
    let changes = [set("policy/api", api), set("plan/free", "100/min")];
    let first = one.write(&nothing(), &changes).await.expect("it is made");
    let seen = read(&other).await;
    let expected = own(&[("plan/free", "100/min"), ("policy/api", api)]);
    assert_eq!((&seen.version, seen.texts), (&first, expected));
    assert_eq!(other.read(Some(&first)).await, Ok(None));

    // A person changes one in a shell, and adds a note.
    let entry = "texts.0.document.limits.0.burst";
    there
        .by_hand(doc! { "$set": { entry: 9.0, "note": "mine" }, "$inc": { "version": 1 } })
        .await;
    let seen = other.read(Some(&first)).await.expect("it answers");
    let seen = seen.expect("it has changed");
    assert_eq!(seen.texts[1].1, api.replace('7', "9"));

    let changes = [remove("plan/free"), set("policy/web", r#"{"name": "web"}"#)];
    let second = other.write(&seen.version, &changes).await;
    let second = second.expect("it is made");
    let names = |it: DocumentSnapshot| it.texts.into_iter().map(|(name, _)| name);
    let names: Vec<String> = names(read(&one).await).collect();
    assert_eq!(names, ["policy/api", "policy/web"]);
    let document = there.document().await.expect("it is there");
    assert_eq!(
        document.get_i64("version").ok().map(|it| it.to_string()),
        Some(second.0)
    );
    assert_eq!(document.get_str("note").ok(), Some("mine"));
    there.over().await;
}

#[tokio::test]
async fn of_concurrent_writers_one_wins_and_the_others_get_a_conflict() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let shelves: Vec<MongoDocumentStore> = (0..8).map(|_| there.shelf()).collect();
    let mut seen = nothing();
    // First the document is created, then changed.
    for _ in 0..3 {
        let changes: Vec<[DocumentChange; 1]> = (0..8)
            .map(|nth| [set("policy/api", &format!(r#"{{"nth": {nth}}}"#))])
            .collect();
        let writes = shelves.iter().zip(&changes);
        let made = join_all(writes.map(|(shelf, change)| shelf.write(&seen, change))).await;
        let winners: Vec<usize> = (0..8).filter(|nth| made[*nth].is_ok()).collect();
        let [winner] = winners[..] else {
            panic!("{made:?}");
        };
        let lost = |it: &&Result<Revision, WriteError>| **it == Err(WriteError::Conflict);
        assert_eq!(made.iter().filter(lost).count(), 7, "{made:?}");
        let now = read(&shelves[0]).await;
        assert_eq!(
            now.texts,
            own(&[("policy/api", &format!(r#"{{"nth": {winner}}}"#))])
        );
        assert_eq!(made[winner], Ok(now.version.clone()));
        seen = now.version;
    }
    there.over().await;
}

#[tokio::test]
async fn a_change_with_a_lost_reply_is_found_and_never_applied_twice() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let relay = Relay::to(&there.url).await;
    let shelf = shelf(&relay.url(&there.url), &there.database, LONG);
    let mut seen = nothing();
    // First by creating the document, then by changing it.
    for rate in ["1/s", "2/s"] {
        relay.lose(LostMessage::Write);
        let made = shelf.write(&seen, &[set("plan/free", rate)]).await;
        let Err(WriteError::Doubtful(why)) = made else {
            panic!("{made:?}");
        };
        assert!(
            why.contains("it is not known whether it was changed"),
            "{why}"
        );
        assert!(relay.has_lost());
        assert_eq!(read(&shelf).await.version, seen, "and it was not");

        relay.lose(LostMessage::Answer);
        let made = shelf.write(&seen, &[set("plan/free", rate)]).await;
        assert!(relay.has_lost());
        let now = read(&shelf).await;
        assert_eq!(made, Ok(now.version.clone()));
        assert_eq!(now.texts, own(&[("plan/free", rate)]));
        seen = now.version;
    }
    there.over().await;
}

#[tokio::test]
async fn a_change_with_an_unknown_result_was_reported_as_not_applied() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let relay = Relay::to(&there.url).await;
    let time_max = Duration::from_secs(2);
    let away = shelf(&relay.url(&there.url), &there.database, time_max);
    let changes = [set("plan/free", "1/s")];
    let seen = away.write(&nothing(), &changes).await.expect("it is made");
    // The check for the result fails as well.
    relay.lose(LostMessage::AnswerAndAllAfter);
    let changes = [set("plan/free", "2/s")];
    let made = away.write(&seen, &changes).await;
    let Err(WriteError::Doubtful(why)) = made else {
        panic!("{made:?}");
    };
    assert!(
        why.contains("it is not known whether it was changed"),
        "{why}"
    );
    let now = read(&there.shelf()).await;
    assert_eq!(now.texts, own(&[("plan/free", "2/s")]), "and it was");
    // A server that was never reached has changed nothing, and that is known.
    let made = away.write(&now.version, &changes).await;
    assert!(matches!(made, Err(WriteError::Away(_))), "{made:?}");
    there.over().await;
}

#[tokio::test]
async fn missing_and_malformed_documents_are_errors_without_their_content() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let shelf = there.shelf();
    let changes = [set("policy/api", r#"{"name": "api"}"#)];
    let seen = shelf.write(&nothing(), &changes).await.expect("it is made");
    let again = || async {
        let read = shelf.read(Some(&seen)).await;
        read.map_err(|SourceError(why)| why)
    };
    there
        .by_hand(doc! { "$set": { "texts.0.document": "odd" }, "$inc": { "version": 1 } })
        .await;
    let why = again().await.expect_err("it is malformed");
    let expected = "document `tidegate` of collection `tidegate_policies`: `texts.0` has an invalid `document`";
    assert!(why.contains(expected), "{why}");
    let made = shelf.write(&seen, &changes).await;
    assert!(matches!(made, Err(WriteError::Away(_))), "{made:?}");
    there.by_hand(doc! { "$set": { "version": "odd" } }).await;
    let why = again().await.expect_err("it is malformed");
    assert!(why.contains("`version` is not a whole number"), "{why}");

    there.collection().drop().await.expect("it is gone");
    let why = again().await.expect_err("it is gone");
    assert!(
        why.contains("it is missing, and so is its version"),
        "{why}"
    );
    let made = shelf.write(&seen, &changes).await;
    assert_eq!(made, Err(WriteError::Conflict));
    there.over().await;
}

#[tokio::test]
async fn manual_edits_are_noticed_and_counted_from_the_next_change() {
    let Some(there) = TestDatabase::make().await else {
        return;
    };
    let shelf = there.shelf();
    let texts = |rate: &str| vec![doc! { "name": "plan/free", "text": rate }];
    let document = doc! { "_id": "tidegate", "texts": texts("1/s") };
    let inserted = there.collection().insert_one(document).await;
    inserted.expect("it is there");
    let first = read(&shelf).await.version;
    assert_eq!(shelf.read(Some(&first)).await, Ok(None));
    there
        .by_hand(doc! { "$set": { "texts": texts("2/s") } })
        .await;
    let changes = [set("plan/pro", "9/s")];
    let made = shelf.write(&first, &changes).await;
    assert_eq!(made, Err(WriteError::Conflict), "it is not what was seen");
    let second = read(&shelf).await.version;
    let third = shelf.write(&second, &changes).await.expect("it is made");
    let now = read(&shelf).await;
    assert!(
        third.is_counted() && third == now.version,
        "{third} {now:?}"
    );
    assert_eq!(now.texts, own(&[("plan/free", "2/s"), ("plan/pro", "9/s")]));
    there.over().await;
}

#[tokio::test]
async fn a_version_check_reads_only_the_version_with_majority_concern() {
    let document = doc! { "_id": "tidegate", "version": 7, "texts": [] };
    let double = Double::start(StoredCollections::from([(COLLECTION, vec![document])])).await;
    let seen = Revision("7".to_owned());
    let local = format!(
        "{}&readConcernLevel=local&readPreference=secondary",
        double.url()
    );
    for (url, level) in [(double.url(), "majority"), (local, "local")] {
        let shelf = shelf(&url, "db", LONG);
        assert_eq!(shelf.read(Some(&seen)).await, Ok(None));
        let asked = double.asked();
        let find = asked.iter().rfind(|it| it.contains_key("find"));
        let find = find.expect("a request arrived");
        assert_eq!(
            find.get_document("projection").ok(),
            Some(&doc! { "version": 1 })
        );
        assert_eq!(
            find.get_document("filter").ok(),
            Some(&doc! { "_id": "tidegate" })
        );
        assert_eq!(
            find.get_document("readConcern").ok(),
            Some(&doc! { "level": level })
        );
    }
}

#[tokio::test]
async fn a_silent_server_is_abandoned_after_the_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("it listens");
    // The driver itself would wait for half a minute.
    let url = format!(
        "mongodb://ann:hunter2@{address}/?directConnection=true&serverSelectionTimeoutMS=30000"
    );
    let shelf = shelf(&url, "db", Duration::from_millis(50));
    let read = tokio::time::timeout(LONG, shelf.read(None)).await;
    let Err(SourceError(why)) = read.expect("it ends") else {
        panic!("nobody answers");
    };
    assert!(
        why.contains("no response within 50ms") && !why.contains("hunter2"),
        "{why}"
    );
}
