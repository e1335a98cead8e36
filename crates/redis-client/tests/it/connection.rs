//! The connection from the view of its users.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

use std::time::Duration;
use tidegate_redis_client::{
    Address, ConnectErrorKind, Connection, ConnectionSettings, NodeChoice, RedisTopology, Script,
    TlsSettings, Ttl,
};
use tidegate_testkit::redis::{Acl, Certificates, Server, ServerProgram, TestLogin};

const AGES: Duration = Duration::from_secs(30);

fn settings(server: &Server) -> ConnectionSettings {
    settings_at(server.port())
}

fn settings_at(port: u16) -> ConnectionSettings {
    ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![Address::new("127.0.0.1", port)],
    )
    .connect_timeout(AGES)
}

fn as_limiter(settings: ConnectionSettings) -> ConnectionSettings {
    let login = TestLogin::limiter();
    settings.user(login.user).password(login.password)
}

fn tls(certificates: &Certificates) -> TlsSettings {
    let read = |path| std::fs::read(path).unwrap();
    TlsSettings::new()
        .ca(read(certificates.authority()))
        .identity(
            read(certificates.client_certificate()),
            read(certificates.client_key()),
        )
}

fn echo() -> Script {
    Script::new("echo", "return {KEYS[1], ARGV[1]}".to_owned())
}

async fn everything_works(connection: &Connection) {
    let key = b"tg:hash";
    assert_eq!(
        connection
            .hset(key, &[("a", "1"), ("b", "2")])
            .await
            .unwrap(),
        2
    );
    let fields = connection.hgetall(key).await.unwrap();
    assert_eq!(
        fields,
        [
            (b"a".to_vec(), b"1".to_vec()),
            (b"b".to_vec(), b"2".to_vec())
        ]
    );
    assert!(connection.exists(key).await.unwrap());
    assert_eq!(connection.ttl(key).await.unwrap(), Ttl::Never);
    let mut expire = redis::cmd("PEXPIRE");
    expire.arg(key).arg(60_000);
    connection
        .command(NodeChoice::Key(key), &expire)
        .await
        .unwrap();
    let Ttl::In(left) = connection.ttl(key).await.unwrap() else {
        panic!("it expires");
    };
    assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60));
    let reply = connection
        .evalsha(&echo(), &["tg:k"], &["v"])
        .await
        .unwrap();
    let reply: (String, String) = redis::from_redis_value(reply).unwrap();
    assert_eq!(reply, ("tg:k".to_owned(), "v".to_owned()));
    let reply = connection
        .eval("return 7", &["tg:k"], &[""; 0])
        .await
        .unwrap();
    assert_eq!(reply, redis::Value::Int(7));
    connection.load_script(&echo()).await.unwrap();
    let mut scan = connection.scan("tg:*", 100);
    let mut keys = Vec::new();
    while let Some(batch) = scan.next_batch().await.unwrap() {
        keys.extend(batch);
    }
    assert_eq!(keys, [key.to_vec()]);
    assert_eq!(connection.del(&[&key[..], b"tg:none"]).await.unwrap(), 1);
    assert_eq!(connection.ttl(key).await.unwrap(), Ttl::Missing);
    let pings = connection.ping().await;
    assert_eq!(pings.len(), 1);
    assert!(pings[0].latency.is_ok());
}

#[tokio::test]
async fn every_flavour_is_served() {
    for flavour in [
        ServerProgram::Redis7,
        ServerProgram::Redis8,
        ServerProgram::Valkey9,
    ] {
        if !flavour.available() {
            continue;
        }
        let server = Server::builder().flavour(flavour).start();
        let connection = Connection::open(settings(&server), vec![echo()])
            .await
            .unwrap();
        everything_works(&connection).await;
    }
}

#[tokio::test]
async fn a_database_has_its_own_keys() {
    let server = Server::start();
    let connection = Connection::open(settings(&server).database(3), vec![])
        .await
        .unwrap();
    connection.hset(b"a", &[("a", "1")]).await.unwrap();
    assert_eq!(server.command(&["EXISTS", "a"]).int(), 0);
}

#[tokio::test]
async fn a_user_with_minimal_permissions_is_enough() {
    // No INFO, no ROLE, no CLIENT: optional commands may be denied.
    let rules = "~tg:* -@all +evalsha +eval +script|load +hset +hgetall +exists +pttl +pexpire \
                 +del +scan +ping";
    let server = Server::builder().acl(Acl::limiter(rules)).start();
    let settings = as_limiter(settings(&server));
    let connection = Connection::open(settings, vec![echo()]).await.unwrap();
    everything_works(&connection).await;
    let denied = connection.hset(b"other", &[("a", "1")]).await.unwrap_err();
    assert_eq!(denied.code(), Some("NOPERM"));
    assert!(!denied.is_transient());
}

#[tokio::test]
async fn a_user_without_script_load_gets_an_error() {
    let server = Server::builder()
        .acl(Acl::limiter("~* -@all +ping"))
        .start();
    let settings = as_limiter(settings(&server));
    let error = Connection::open(settings, vec![echo()]).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Refused);
    assert!(error.to_string().contains("NOPERM"), "{error}");
}

#[tokio::test]
async fn tls_with_an_own_authority_and_a_client_certificate() {
    let certificates = Certificates::make();
    let server = Server::builder()
        .tls(&certificates)
        .ask_clients()
        .acl(Acl::limiter("~* +@all"))
        .start();
    let settings = as_limiter(settings(&server));
    let with = settings.clone().tls(tls(&certificates));
    let connection = Connection::open(with, vec![echo()]).await.unwrap();
    everything_works(&connection).await;

    let stranger = TlsSettings {
        identity: None,
        ..tls(&certificates)
    };
    let error = Connection::open(settings.clone().tls(stranger), vec![])
        .await
        .unwrap_err();
    assert_ne!(error.kind(), ConnectErrorKind::Settings, "{error}");
    let other = TlsSettings {
        ca: tls(&Certificates::make()).ca,
        ..tls(&certificates)
    };
    let error = Connection::open(settings.clone().tls(other), vec![])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Tls, "{error}");
    let plain = settings.connect_timeout(Duration::from_secs(2));
    let error = Connection::open(plain, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Unreachable, "{error}");
}

/// Nodes may announce addresses that their certificate does not contain.
#[tokio::test]
async fn the_server_name_replaces_the_host_in_the_check_of_the_certificate() {
    let certificates = Certificates::make();
    let server = Server::builder().tls(&certificates).start();
    // An alternative notation of 127.0.0.1 that the certificate does not contain.
    let other_host = vec![Address::new("127.1", server.port())];
    let settings = ConnectionSettings::new(RedisTopology::Standalone, other_host);
    let settings = settings.connect_timeout(AGES);
    let open = async |tls: TlsSettings| {
        let opened = Connection::open(settings.clone().tls(tls), vec![]).await;
        opened.map(drop).map_err(|error| error.kind())
    };
    let tls = tls(&certificates);
    assert_eq!(open(tls.clone()).await, Err(ConnectErrorKind::Tls));
    assert_eq!(open(tls.clone().server_name("localhost")).await, Ok(()));
    let wrong = tls.clone().server_name("redis.test");
    assert_eq!(open(wrong).await, Err(ConnectErrorKind::Tls));
    let invalid = tls.server_name("not a name");
    assert_eq!(open(invalid).await, Err(ConnectErrorKind::Settings));
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_not_shown() {
    let server = Server::builder().acl(Acl::limiter("~* +@all")).start();
    let settings = settings(&server).user("limiter").password("hunter2");
    let error = Connection::open(settings.clone(), vec![])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Refused);
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("rejected the password of the user 'limiter'"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
    let connection = Connection::start(settings, vec![]).unwrap();
    assert!(!format!("{connection:?} {connection:#?}").contains("hunter2"));
}

#[tokio::test]
async fn an_unneeded_password_is_reported_with_the_server_message() {
    let server = Server::start();
    let settings = settings(&server).password("hunter2");
    let error = Connection::open(settings, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Refused);
    let text = error.to_string();
    assert!(text.contains("remove `password`"), "{text}");
    assert!(
        text.contains("called without any password configured"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn an_unknown_database_is_reported_with_the_server_message() {
    let server = Server::start();
    let settings = settings(&server).database(4711);
    let error = Connection::open(settings, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Refused);
    let text = error.to_string();
    assert!(
        text.ends_with("rejected database 4711: DB index is out of range"),
        "{text}"
    );
}

#[tokio::test]
async fn a_missing_password_is_reported() {
    let server = Server::builder().acl(Acl::limiter("~* +@all")).start();
    let error = Connection::open(settings(&server), vec![])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Refused);
    assert!(error.to_string().contains("requires a password"), "{error}");
}

#[tokio::test]
async fn an_unreachable_server_is_reported_with_its_address() {
    let server = Server::start();
    let settings = settings(&server);
    server.kill9();
    let error = Connection::open(settings, vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::Unreachable);
    let expected = format!("cannot reach Redis at 127.0.0.1:{}", server.port());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn settings_that_can_never_work_are_refused_at_once() {
    let at = vec![Address::new("127.0.0.1", 1)];
    let bad = [
        ConnectionSettings::new(RedisTopology::Standalone, vec![]),
        ConnectionSettings::new(RedisTopology::Cluster, at.clone()).database(1),
        ConnectionSettings::new(RedisTopology::Standalone, at)
            .tls(TlsSettings::new().ca("no certificate")),
    ];
    for settings in bad {
        let error = Connection::start(settings.clone(), vec![]).unwrap_err();
        assert_eq!(error.kind(), ConnectErrorKind::Settings);
        assert_eq!(settings.check().unwrap_err(), error);
    }
}

#[tokio::test]
async fn a_server_without_cluster_mode_is_recognized() {
    let server = Server::start();
    let settings = ConnectionSettings::new(
        RedisTopology::Cluster,
        vec![Address::new("127.0.0.1", server.port())],
    );
    let error = Connection::open(settings, vec![]).await.unwrap_err();
    assert!(
        error.to_string().contains("is this a Cluster node?"),
        "{error}"
    );
}

#[tokio::test]
async fn of_several_standalone_addresses_the_first_is_used() {
    let (first, second) = (Server::start(), Server::start());
    let addresses = [&first, &second].map(|s| Address::new("127.0.0.1", s.port()));
    let settings = ConnectionSettings::new(RedisTopology::Standalone, addresses.to_vec());
    let connection = Connection::open(settings, vec![]).await.unwrap();
    connection.hset(b"a", &[("a", "1")]).await.unwrap();
    assert_eq!(first.command(&["EXISTS", "a"]).int(), 1);
}
