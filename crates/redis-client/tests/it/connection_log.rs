//! The connection's log messages for operators.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers as well"
)]

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_redis_client::{Address, Connection, ConnectionSettings, RedisTopology};
use tidegate_testkit::redis::{Acl, Server, TestLogin};
use tracing_subscriber::fmt::MakeWriter;

/// The log of all tests in this binary: a subscriber per thread would miss lines that another
/// thread logs first. Lines are distinguished by their ports.
#[derive(Clone, Default)]
struct Log(Arc<parking_lot::Mutex<Vec<u8>>>);

impl Log {
    fn start() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(log.clone())
                .init();
            log
        })
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// Returns the lines about this port.
    fn about(&self, port: u16) -> String {
        let name = format!("127.0.0.1:{port}");
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains(&name));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the number of those with this level.
    fn count(&self, port: u16, level: &str) -> usize {
        let about = self.about(port);
        let level = format!(" {level} tidegate_redis_client::");
        about.lines().filter(|line| line.contains(&level)).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let trying = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, trying).await.expect(what);
}

#[tokio::test]
async fn the_first_join_logs_one_line_without_secrets() {
    let log = Log::start();
    let server = Server::builder().acl(Acl::limiter("~* +@all")).start();
    server.kill9();
    let port = server.port();
    let count = |level| log.count(port, level);
    let login = TestLogin::limiter();
    let settings = ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![Address::new("127.0.0.1", port)],
    )
    .user(login.user)
    .password(login.password.clone());
    let connection = Connection::start(settings, vec![]).unwrap();
    assert!(!connection.is_connected());
    eventually("several attempts", || count("DEBUG") >= 3).await;
    assert_eq!(
        (count("WARN"), count("INFO")),
        (0, 0),
        "{}",
        log.about(port)
    );
    server.restart();
    connection.connected().await;
    eventually("it is told", || count("INFO") == 1).await;
    assert!(log.about(port).contains("mode=standalone"));
    // The second outage is reported by the code that decides without Redis.
    server.kill9();
    let again = |word| log.about(port).contains(word);
    eventually("it is noticed", || !connection.is_connected()).await;
    server.restart();
    eventually("it is back", || again("connected to Redis again")).await;
    assert_eq!(
        (count("WARN"), count("INFO")),
        (0, 1),
        "{}",
        log.about(port)
    );
    assert!(!log.text().contains(&login.password));
}

#[tokio::test]
async fn several_standalone_addresses_are_warned_about() {
    let log = Log::start();
    let at = vec![Address::new("127.0.0.1", 1), Address::new("127.0.0.1", 2)];
    let _connection = Connection::start(
        ConnectionSettings::new(RedisTopology::Standalone, at),
        vec![],
    )
    .unwrap();
    let said = log.about(1);
    assert!(said.contains("using the first"), "{said}");
}
