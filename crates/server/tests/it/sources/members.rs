//! Members of etcd that hang or hang up, and what is asked of them.

use super::admin::{admin, administrate};
use super::etcd::{Etcd, limits};
use super::kit::{Program, policy};
use super::wire::{Manner, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::net::SocketAddr;

fn config(members: &[SocketAddr], refresh: &str) -> String {
    let members: Vec<String> = members.iter().map(|it| format!("'http://{it}'")).collect();
    let members = members.join(", ");
    format!(
        "sources: [{{ etcd: {{ endpoints: [{members}], refresh: {refresh}, timeout: 4s }} }}]\n{}",
        admin()
    )
}

#[tokio::test]
async fn a_member_that_hung_kept_the_others_from_being_asked() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    // It is connected to, and says nothing.
    let hangs = Wire::to(etcd.client, Manner::Hangs).await;
    let text = config(&[hangs.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "5/s");
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    // Nor is it asked first for a change, of which it would never be known what became.
    let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("7/s")).await;
    assert_eq!(status, 200, "{said}");
    assert!(!program.is_stale("etcd").await);
}

#[tokio::test]
async fn a_member_that_hangs_when_it_has_answered_is_left_for_the_next() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let wire = Wire::to(etcd.client, Manner::Passes).await;
    let text = config(&[wire.address, etcd.client], "200ms");
    let mut program = Program::start(&text).await;
    assert!(!wire.asked().is_empty(), "it is asked first");
    wire.be(Manner::Hangs);
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn a_change_was_asked_for_twice_where_the_first_member_may_have_made_it() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    for manner in [Manner::BreaksOnChanges, Manner::HangsOnChanges] {
        let first = Wire::to(etcd.client, manner).await;
        let program = Program::start(&config(&[first.address, etcd.client], "1h")).await;
        let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("6/s")).await;
        assert!(status >= 500, "{status} {said}");
        assert!(
            said.to_string()
                .contains("it is not known whether it was changed"),
            "{said}"
        );
        let key = json!({ "key": STANDARD.encode("/tidegate/policy/api") });
        let there = etcd.call("kv/range", &key).await.unwrap();
        assert_eq!(
            there["kvs"][0]["version"], "1",
            "nobody else was asked: {there}"
        );
        assert_eq!(program.band("api").await, "5/s");
    }
}
