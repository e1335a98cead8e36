//! Shutdown without losing requests.

use crate::kit::{CONFIG, Client, Server, line};
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tidegate_server::program::ServeEnd;

#[tokio::test]
async fn a_server_that_stops_closes_idle_connections() {
    let server = Server::start(CONFIG).await;
    let mut used = Client::connect(server.resp).await;
    assert_eq!(used.ask("ping").await, "+PONG\r\n");
    let mut fresh = Client::connect(server.resp).await;
    let stopping = server.stop();
    assert_eq!(
        (used.rest().await, fresh.rest().await),
        (String::new(), String::new())
    );
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn commands_in_flight_are_answered() {
    let bounds = Bounds {
        // Long enough for a busy machine.
        farewell_time: Duration::from_secs(5),
        ..Bounds::default()
    };
    let server = Server::with(CONFIG, bounds).await;
    let mut client = Client::connect(server.resp).await;
    assert_eq!(client.ask("ping").await, "+PONG\r\n");
    let stopping = server.stop();
    let mut answered = 0;
    while answered < 100 {
        assert_eq!(
            client.ask("cl.throttle a 1000 1 1 0").await.lines().nth(1),
            Some(":0")
        );
        answered += 1;
    }
    client.send(&line("quit")).await;
    assert_eq!(client.rest().await, "+OK\r\n");
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn a_partial_command_does_not_delay_shutdown() {
    let server = Server::start(CONFIG).await;
    let mut client = Client::connect(server.resp).await;
    assert_eq!(client.ask("ping").await, "+PONG\r\n");
    client.send(b"*2\r\n$4\r\nec").await;
    let stopping = server.stop();
    assert_eq!(client.rest().await, "");
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}
