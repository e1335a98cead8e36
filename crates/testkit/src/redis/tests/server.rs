use std::time::Duration;

use crate::redis::{Access, Acl, BlockingClient, Certificates, Server, ServerProgram, audit};

#[test]
fn a_server_replies_and_loses_its_data_when_killed() {
    let server = Server::start();
    let mut client = server.client();
    client.command(&["SET", "a", "1", "PX", "60000"]).done();
    assert_eq!(client.command(&["GET", "a"]).text(), "1");
    assert!(client.command(&["PTTL", "a"]).int() > 0);
    server.kill9();
    assert!(!server.is_running());
    assert!(server.try_client().is_err());
    server.restart();
    assert!(server.command(&["GET", "a"]).is_nil());
}

#[test]
fn a_paused_server_sends_nothing_until_resumed() {
    let server = Server::start();
    let mut client = server.client();
    client.patience(Duration::from_millis(50));
    server.stop();
    assert!(client.try_command(&["PING"]).is_err());
    server.cont();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
}

#[test]
fn every_flavour_starts() {
    for flavour in ServerProgram::ALL {
        if flavour.available() {
            let server = Server::builder().flavour(flavour).start();
            assert_eq!(server.command(&["PING"]).text(), "PONG", "{flavour:?}");
        }
    }
}

#[test]
fn users_and_certificates_are_required() {
    let certificates = Certificates::make();
    let server = Server::builder()
        .tls(&certificates)
        .ask_clients()
        .acl(Acl::limiter("~rl:* -@all +get"))
        .start();
    assert!(
        BlockingClient::connect(server.port(), &Access::default())
            .and_then(|mut plain| plain.try_command(&["PING"]))
            .is_err()
    );
    let mut limiter = BlockingClient::connect(server.port(), &server.limiter()).unwrap();
    assert!(limiter.command(&["GET", "rl:a"]).is_nil());
    for refused in [&["GET", "a"][..], &["SET", "rl:a", "1"]] {
        let reply = limiter.command(refused);
        assert!(reply.error().unwrap().starts_with("NOPERM"), "{reply:?}");
    }
    assert_eq!(server.command(&["DBSIZE"]).int(), 0);
}

#[test]
fn the_audit_finds_keys_without_expiry() {
    let server = Server::start();
    let mut client = server.client();
    for number in 0..2_500 {
        let key = format!("rl:{number}");
        client.command(&["SET", &key, "1", "PX", "600000"]).done();
    }
    for key in ["rl:forever", "list:a", "map"] {
        client.command(&["SET", key, "1"]).done();
    }
    assert_eq!(audit(&mut client, &["list:*", "map"]), ["rl:forever"]);
}
