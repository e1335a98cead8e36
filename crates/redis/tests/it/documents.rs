//! A hash with documents, changed as instances do.

use tidegate_redis::{Address, Connection, ConnectionSettings, RedisTopology, WriteOutcome};
use tidegate_testkit::redis::Server;

const KEY: &[u8] = b"policies";
const CHANNEL: &[u8] = b"policies:changed";
const CHANGES: [(&str, Option<&str>); 1] = [("policy/api", Some("{}"))];

fn settings(server: &Server) -> ConnectionSettings {
    let address = Address::new("127.0.0.1", server.port());
    ConnectionSettings::new(RedisTopology::Standalone, vec![address])
}

async fn open(settings: ConnectionSettings) -> Connection {
    let opened = Connection::open(settings, Vec::new()).await;
    opened.expect("a server that was just started")
}

async fn change(connection: &Connection, expected: &str) -> String {
    let changed = connection.change_documents(KEY, expected, CHANNEL, &CHANGES);
    let changed = changed.await.expect("a change that is made");
    assert!(matches!(changed, WriteOutcome::To(_)), "{changed:?}");
    let (WriteOutcome::To(version) | WriteOutcome::Conflict(version)) = changed;
    version
}

#[tokio::test]
async fn a_change_that_nobody_could_be_told_of_was_made_and_called_a_failure() {
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
    let connection = open(settings(&server).user("writer").password("hush")).await;
    let version = change(&connection, "0").await;
    let (now, documents) = connection.documents(KEY).await.unwrap();
    assert_eq!((now, documents.len()), (version, 1));
}

#[tokio::test]
async fn documents_whose_version_was_no_number_were_changed_and_it_was_called_a_failure() {
    let server = Server::start();
    let connection = open(settings(&server)).await;
    server
        .command(&["HSET", "policies", "version", "one", "policy/api", "before"])
        .int();
    let changed = connection.change_documents(KEY, "one", CHANNEL, &CHANGES);
    assert!(changed.await.is_err());
    let (_, documents) = connection.documents(KEY).await.unwrap();
    assert_eq!(documents, [("policy/api".to_owned(), "before".to_owned())]);
}

#[tokio::test]
async fn two_masters_came_to_the_same_version_by_different_documents() {
    let (one, other) = (Server::start(), Server::start());
    let mut versions = Vec::new();
    for server in [&one, &other] {
        server.command(&["HSET", "policies", "version", "8"]).int();
        let connection = open(settings(server)).await;
        versions.push(change(&connection, "8").await);
    }
    assert_ne!(versions[0], versions[1]);
}

#[tokio::test]
async fn a_version_beyond_the_clock_is_counted_on_to_the_last_digit() {
    let server = Server::start();
    let connection = open(settings(&server)).await;
    let beyond = "9223372036854775000";
    server
        .command(&["HSET", "policies", "version", beyond])
        .int();
    assert_eq!(change(&connection, beyond).await, "9223372036854775001");
}

#[tokio::test]
async fn many_documents_are_read_piece_by_piece_and_all_of_one_version() {
    let server = Server::start();
    let (reader, writer) = (open(settings(&server)).await, open(settings(&server)).await);
    let names: Vec<String> = (0..12_000).map(|nth| format!("subject/{nth}")).collect();
    let changes: Vec<(&str, Option<&str>)> =
        names.iter().map(|it| (it.as_str(), Some("0"))).collect();
    let made = reader.change_documents(KEY, "0", CHANNEL, &changes).await;
    assert!(matches!(made, Ok(WriteOutcome::To(_))), "{made:?}");
    // The first and the last are changed together, so that whoever reads sees both or neither.
    let writing = async {
        for nth in 1..=40 {
            let text = nth.to_string();
            let both = ["subject/0", "subject/11999"].map(|it| (it, Some(text.as_str())));
            let version = writer.documents_version(KEY).await.unwrap();
            let written = writer.change_documents(KEY, &version, CHANNEL, &both).await;
            assert!(matches!(written, Ok(WriteOutcome::To(_))), "{written:?}");
            tokio::task::yield_now().await;
        }
    };
    let reading = async {
        for _ in 0..10 {
            match reader.documents(KEY).await {
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
    let (_, documents) = reader.documents(KEY).await.unwrap();
    assert_eq!(documents.len(), names.len());
}
