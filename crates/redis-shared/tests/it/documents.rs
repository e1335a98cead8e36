//! A hash with documents, changed as instances do it.

use tidegate_redis_client::{Address, Connection, ConnectionSettings, RedisTopology};
use tidegate_redis_shared::{RedisDocuments, WriteOutcome};
use tidegate_testkit::redis::Server;

const KEY: &[u8] = b"policies";
const CHANNEL: &[u8] = b"policies:changed";
const CHANGES: [(&str, Option<&str>); 1] = [("policy/api", Some("{}"))];

fn settings(server: &Server) -> ConnectionSettings {
    let address = Address::new("127.0.0.1", server.port());
    ConnectionSettings::new(RedisTopology::Standalone, vec![address])
}

async fn open(settings: ConnectionSettings) -> RedisDocuments {
    let opened = Connection::open(settings, Vec::new()).await;
    RedisDocuments::new(opened.expect("a server that was just started"), KEY)
}

async fn change(documents: &RedisDocuments, expected: &str) -> String {
    let changed = documents.change(expected, CHANNEL, &CHANGES);
    let changed = changed.await.expect("a change that is made");
    assert!(matches!(changed, WriteOutcome::To(_)), "{changed:?}");
    let (WriteOutcome::To(version) | WriteOutcome::Conflict(version)) = changed;
    version
}

#[tokio::test]
async fn a_change_whose_announcement_failed_was_reported_as_failed() {
    let server = Server::start();
    let user = [
        "ACL",
        "SETUSER",
        "writer",
        "on",
        ">hush",
        "~*",
        "+@all",
        "resetchannels",
    ];
    server.command(&user).text();
    let documents = open(settings(&server).user("writer").password("hush")).await;
    let version = change(&documents, "0").await;
    let (now, read) = documents.read().await.unwrap();
    assert_eq!((now, read.len()), (version, 1));
}

#[tokio::test]
async fn documents_with_a_non_numeric_version_were_changed_and_failed() {
    let server = Server::start();
    let documents = open(settings(&server)).await;
    server
        .command(&["HSET", "policies", "version", "one", "policy/api", "before"])
        .int();
    let changed = documents.change("one", CHANNEL, &CHANGES);
    assert!(changed.await.is_err());
    let (_, read) = documents.read().await.unwrap();
    assert_eq!(read, [("policy/api".to_owned(), "before".to_owned())]);
}

#[tokio::test]
async fn two_masters_reached_one_version_with_different_documents() {
    let (one, other) = (Server::start(), Server::start());
    let mut versions = Vec::new();
    for server in [&one, &other] {
        server.command(&["HSET", "policies", "version", "8"]).int();
        let documents = open(settings(server)).await;
        versions.push(change(&documents, "8").await);
    }
    assert_ne!(versions[0], versions[1]);
}

#[tokio::test]
async fn a_version_beyond_the_clock_is_incremented_exactly() {
    let server = Server::start();
    let documents = open(settings(&server)).await;
    let beyond = "9223372036854775000";
    server
        .command(&["HSET", "policies", "version", beyond])
        .int();
    assert_eq!(change(&documents, beyond).await, "9223372036854775001");
}

#[tokio::test]
async fn many_documents_are_read_in_pieces_at_one_version() {
    let server = Server::start();
    let (reader, writer) = (open(settings(&server)).await, open(settings(&server)).await);
    let names: Vec<String> = (0..12_000).map(|nth| format!("subject/{nth}")).collect();
    let changes: Vec<(&str, Option<&str>)> =
        names.iter().map(|it| (it.as_str(), Some("0"))).collect();
    let made = reader.change("0", CHANNEL, &changes).await;
    assert!(matches!(made, Ok(WriteOutcome::To(_))), "{made:?}");
    // The first and the last are changed together, so that a reader sees both or neither.
    let writing = async {
        for nth in 1..=40 {
            let text = nth.to_string();
            let both = ["subject/0", "subject/11999"].map(|it| (it, Some(text.as_str())));
            let version = writer.version().await.unwrap();
            let written = writer.change(&version, CHANNEL, &both).await;
            assert!(matches!(written, Ok(WriteOutcome::To(_))), "{written:?}");
            tokio::task::yield_now().await;
        }
    };
    let reading = async {
        for _ in 0..10 {
            match reader.read().await {
                Ok((_, documents)) => {
                    let text = |name: &str| documents.iter().find(|(it, _)| it == name).unwrap();
                    assert_eq!(documents.len(), names.len());
                    assert_eq!(text("subject/0").1, text("subject/11999").1);
                }
                Err(error) => assert!(error.to_string().contains("changes faster"), "{error}"),
            }
        }
    };
    tokio::join!(writing, reading);
    let (_, documents) = reader.read().await.unwrap();
    assert_eq!(documents.len(), names.len());
}
