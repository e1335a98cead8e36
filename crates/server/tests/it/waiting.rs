//! Limits with a queue, in the HTTP frontends.

use crate::admin::samples;
use crate::kit::client::question;
use crate::kit::{Client, Server, get, post};

/// One at once; the next turn is too far away for any waiter.
const SLOW: &str = "
client: { trusted_proxies: [127.0.0.1] }
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: api
    limits: [{ name: slow, rate: 100/h burst 1, on_refusal: wait, max_wait: 1h, max_waiting: 3 }]
";

/// One at once, and a hundred per second.
const FAST: &str = "
client: { trusted_proxies: [127.0.0.1] }
policies:
  - name: api
    limits: [{ name: fast, rate: 100/s burst 1, on_refusal: wait, max_wait: 10s }]
";

const AUTH: &str = "GET /v1/auth HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 192.0.2.1\r\n\
                    x-forwarded-method: GET\r\nx-forwarded-uri: /\r\n\r\n";

/// Waits until this many requests wait.
async fn until_waiting(server: &Server, count: f64) {
    let sample = "tidegate_waiting_requests{policy=\"api\",limit=\"slow\"}";
    loop {
        let samples = samples(&get(server.admin, "/metrics").await.body);
        if samples.get(sample) == Some(&count) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_the_queue_frees_its_place_at_every_frontend() {
    let server = Server::start(SLOW).await;
    assert!(post(server.http, "{}").await.is_allowed());
    until_waiting(&server, 0.0).await;
    for request in [question("{}"), AUTH.to_owned()] {
        for _ in 0..3 {
            let mut clients = Vec::new();
            for _ in 0..3 {
                let mut client = Client::connect(server.http).await;
                client.send(&request).await;
                clients.push(client);
            }
            until_waiting(&server, 3.0).await;
            // The queue is full: refused immediately.
            assert!(!post(server.http, "{}").await.is_allowed());
            assert_eq!(
                Client::connect(server.http).await.ask(AUTH).await.status,
                429
            );
            clients.pop();
            until_waiting(&server, 2.0).await;
            drop(clients);
            until_waiting(&server, 0.0).await;
        }
    }
}

#[tokio::test]
async fn waiting_requests_finally_pass_at_every_frontend() {
    let server = Server::start(FAST).await;
    let mut clients = Vec::new();
    for nth in 0..20 {
        let mut client = Client::connect(server.http).await;
        let request = if nth % 2 == 0 {
            question("{}")
        } else {
            AUTH.to_owned()
        };
        client.send(&request).await;
        clients.push(client);
    }
    for (nth, client) in clients.iter_mut().enumerate() {
        let reply = client.reply().await;
        assert_eq!(reply.status, 200, "{nth}: {reply:?}");
        assert!(nth % 2 == 1 || reply.is_allowed(), "{nth}: {reply:?}");
    }
    // A list takes as long as its last request.
    let list = post(server.http, "[{}, {}, {}]").await.json();
    let decisions = list.as_array().unwrap();
    assert!(decisions.iter().all(|decision| decision["allowed"] == true));
}
