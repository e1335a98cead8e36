use super::kit::{ADMIN, AdminServer};
use crate::kit::folder::Folder;
use crate::kit::process::{run, tidegate};
use serde_json::Value;

#[tokio::test]
async fn a_generated_token_authenticates_with_its_hash() {
    let made = run(tidegate(&["token", "--json"])).await;
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let (token, hash) = (
        made["token"].as_str().unwrap(),
        made["hash"].as_str().unwrap(),
    );
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
admin: {{ tokens: [{{ name: ann, role: admin, hash: '{hash}' }}] }}
"
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let known = server.call("GET", "/whoami").by(token).send().await;
    assert_eq!(
        known.json(),
        serde_json::json!({ "name": "ann", "role": "admin" })
    );
    assert_eq!(
        server.call("GET", "/whoami").by(ADMIN).send().await.status,
        401
    );

    let printed = run(tidegate(&["token"])).await.stdout;
    assert!(
        printed.starts_with("token  tga_") && printed.contains("hash   sha256:"),
        "{printed}"
    );
}
