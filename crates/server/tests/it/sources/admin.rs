//! Calls of a program's admin API.

use super::kit::Program;
use crate::kit::Client;
use serde_json::Value;
use tidegate_policy::text::Sha256;

const TOKEN: &str = "tga_of-one-who-changes";

/// Returns the `admin` section with the token of these tests.
pub(super) fn admin() -> String {
    let hash = Sha256::of(TOKEN.as_bytes());
    format!("admin: {{ tokens: [{{ name: ann, role: admin, hash: '{hash}' }}] }}")
}

/// Sends a call to the admin API of a program.
pub(super) async fn administrate(
    program: &Program,
    verb: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let head = format!(
        "{verb} /admin/v1{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nif-match: *\r\n",
        program.admin
    );
    let request = if body.is_null() {
        format!("{head}\r\n")
    } else {
        let (kind, body) = ("content-type: application/json", body.to_string());
        let length = body.len();
        format!("{head}{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let mut client = Client::connect(program.admin).await;
    let reply = client.ask(&request).await;
    let said = serde_json::from_str(&reply.body).unwrap_or(Value::Null);
    (reply.status, said)
}
