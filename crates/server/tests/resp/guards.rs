//! Guards: a refusal has two more fields with the reason.

use crate::kit::{Client, Server};
use crate::same::values;

const GUARDED: &str = "
listen: { http: '127.0.0.1:0', resp: '127.0.0.1:0', admin: '127.0.0.1:0' }
guards: [{ name: blacklist, deny: ip, list: [192.0.2.7] }]
policies: [{ name: api, limits: [{ name: all, rate: 1/h burst 1 }] }]
";

#[tokio::test]
async fn a_listed_address_is_refused_with_a_reason_and_no_retry() {
    let server = Server::start(GUARDED).await;
    let mut client = Client::connect(server.resp).await;
    for _ in 0..3 {
        let said = client.ask("TG.CHECK api ip 192.0.2.7").await;
        let never = ["0", "-1", "-1", "-1", "-1", "0", "store"];
        assert_eq!(values(&said)[..7], never, "{said}");
        assert_eq!(values(&said)[7..], ["blacklisted", "blacklist"], "{said}");
    }
    let said = client.ask("TG.CHECK api ip 192.0.2.8").await;
    assert_eq!(values(&said)[0], "1");
    assert_eq!(values(&said)[7..], ["allowed", "-1"], "{said}");
    let said = client.ask("TG.CHECK api ip 192.0.2.8").await;
    assert_eq!(values(&said)[7..], ["limited", "-1"], "{said}");
}

#[tokio::test]
async fn in_shadow_mode_neither_a_check_nor_a_throttle_is_refused() {
    let server = Server::start(&format!("mode: shadow{GUARDED}")).await;
    let mut client = Client::connect(server.resp).await;
    for _ in 0..3 {
        let said = client.ask("TG.CHECK api ip 192.0.2.7").await;
        assert_eq!(values(&said)[..2], ["1", "-1"], "{said}");
    }
    let said = client.ask("CL.THROTTLE ann 0 1 60").await;
    assert_eq!(values(&said)[..4], ["0", "1", "0", "-1"], "{said}");
    let said = client.ask("CL.THROTTLE ann 0 1 60").await;
    assert_eq!(values(&said)[..4], ["0", "1", "0", "-1"], "{said}");
}
