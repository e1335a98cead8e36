//! Nothing stays in the store forever.

use super::client::BlockingClient;
use super::reply::RespReply;

/// Returns the keys without expiry, but for those that an exception names: a whole key, or the
/// beginning of one before a `*` at its end.
///
/// ```no_run
/// # use tidegate_testkit::redis::{Server, audit};
/// # let server = Server::start();
/// assert_eq!(audit(&mut server.client(), &["tidegate:list:*"]), Vec::<String>::new());
/// ```
pub fn audit(client: &mut BlockingClient, exceptions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let page = client.command(&["SCAN", &cursor, "COUNT", "1000"]).good();
        let [next, keys] = page.list() else {
            panic!("SCAN answered {page:?}");
        };
        for key in keys.list() {
            let name = key.text();
            if !exceptions.iter().any(|pattern| matches(pattern, &name)) && is_forever(client, key)
            {
                found.push(name);
            }
        }
        cursor = next.text();
        if cursor == "0" {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn is_forever(client: &mut BlockingClient, key: &RespReply) -> bool {
    // -1: no expiry. -2: gone in the meantime.
    client.command(&[&b"PTTL"[..], key.bytes()]).int() == -1
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}
