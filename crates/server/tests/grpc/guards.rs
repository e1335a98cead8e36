//! Guards: denied clients get OVER_LIMIT.

use crate::kit::{Server, about, ask, codes, metrics};

#[tokio::test]
async fn a_call_of_a_listed_client_is_over_the_limit_and_free() {
    let server = Server::start(
        "
guards:
  - { name: projects, deny: 'descriptor:project', list: [p1] }
  - { name: staff, allow: 'descriptor:user', list: [root] }
policies:
  - name: edge
    domain: shop/http
    limits: [{ name: per-user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/hour }]
",
    )
    .await;
    let mut client = server.client().await;
    let user: &[(&str, &str)] = &[("user", "ann")];
    let project: &[(&str, &str)] = &[("project", "p1")];
    for _ in 0..3 {
        let refused = ask(&mut client, about(&[user, project])).await;
        assert_eq!(codes(&refused), ["OVER_LIMIT", "OVER_LIMIT", "OVER_LIMIT"]);
        let body = String::from_utf8(refused.raw_body).unwrap();
        assert!(body.contains("blocked"), "{body}");
        let names = refused.response_headers_to_add.iter();
        assert!(names.map(|it| &it.key).all(|name| name != "retry-after"));
    }
    let passes = ask(&mut client, about(&[user])).await;
    assert_eq!(codes(&passes), ["OK", "OK"]);
    let root: &[(&str, &str)] = &[("user", "root")];
    for _ in 0..3 {
        assert_eq!(codes(&ask(&mut client, about(&[root])).await), ["OK", "OK"]);
    }
    let page = metrics(&server).await;
    assert!(
        page.contains(r#"tidegate_guard_refusals_total{guard="projects",reason="blocked"} 3"#),
        "{page}"
    );
}

#[tokio::test]
async fn in_shadow_mode_no_call_is_over_the_limit() {
    let server = Server::start(
        "
mode: shadow
guards: [{ name: projects, deny: 'descriptor:project', list: [p1] }]
policies:
  - name: edge
    domain: shop/http
    limits: [{ name: per-user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 1/hour }]
",
    )
    .await;
    let mut client = server.client().await;
    let user: &[(&str, &str)] = &[("user", "ann")];
    let project: &[(&str, &str)] = &[("project", "p1")];
    for _ in 0..3 {
        let passes = ask(&mut client, about(&[user, project])).await;
        assert_eq!(codes(&passes), ["OK", "OK", "OK"]);
    }
    let page = metrics(&server).await;
    let refused =
        r#"limit="per-user",outcome="shadow_refused",decided_by="store",reason="limited"} 2"#;
    assert!(page.contains(refused), "{page}");
}
